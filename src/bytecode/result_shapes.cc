// result_shapes.cc: a walk over types, with the values that are known beside them.
#include "bytecode/result_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/interpreter.h"
#include "ir/ops/dynamic.h"
#include "ir/tensor_types.h"

namespace collage::vm {
namespace {

constexpr int64_t kMostElements = 64;

/// A value of a run: its type, and its elements where shapes tell them.
struct Known {
  Type type;
  Value value;
};

bool HasValue(const Known& known) { return known.value.defined(); }

Type TypeOfValue(const Value& value) {
  if (value.kind() == Value::Kind::kTensor) return TensorType(value.tensor().shape(), value.tensor().dtype());
  std::vector<Type> fields;
  for (const Value& field : value.fields()) fields.push_back(TypeOfValue(field));
  return TupleType(std::move(fields));
}

/// A tensor without elements to read, or its own value.
Value StandIn(const Known& known) {
  if (HasValue(known)) return known.value;
  const TensorTypeNode* tensor = AsTensorType(known.type);
  if (tensor == nullptr || !tensor->is_static())
    throw Error(ErrorCategory::kInput, "a shape does not follow from others");
  return Value(Tensor::View(tensor->static_shape(), tensor->dtype(), nullptr, nullptr));
}

Type Related(const OpDef& op, const std::vector<Known>& args, const Attrs& attrs) {
  std::vector<Type> types;
  for (const Known& arg : args) types.push_back(arg.type);
  const Result<Type> type = op.relation({types, attrs});
  if (!type.ok()) throw Error(ErrorCategory::kInput, fmt::format("'{}' {}", op.name, type.reason().text));
  return *type;
}

Known Call(const OpDef& op, const Attrs& attrs, const std::vector<Known>& args) {
  if (ReadsShapeAlone(op) || (!args.empty() && std::ranges::all_of(args, HasValue))) {
    std::vector<Value> values;
    for (const Known& arg : args) values.push_back(StandIn(arg));
    const Value value = ApplyOp(op, attrs, values);
    return {TypeOfValue(value), value};
  }
  const DynamicOp* dynamic = FindDynamicOp(op.name);
  if (dynamic == nullptr) return {Related(op, args, attrs), {}};
  std::vector<Tensor> sizes;
  for (const Known& size : ValuesOf(*dynamic, std::span<const Known>(args))) {
    if (!HasValue(size)) throw Error(ErrorCategory::kInput, fmt::format("the sizes of '{}' are not known", op.name));
    sizes.push_back(size.value.tensor());
  }
  const OpDef& fixed = GetOp(dynamic->static_name)->def();
  return {Related(fixed, DataOf(*dynamic, std::span<const Known>(args)), StaticAttrs(*dynamic, attrs, sizes)), {}};
}

Known Field(const Known& tuple, int field) {
  const TupleTypeNode* type = AsTupleType(tuple.type);
  const auto index = static_cast<size_t>(field);
  if (type == nullptr || index >= type->fields().size()) {
    throw Error(ErrorCategory::kCorrupt, "what a kernel knows of its shapes is damaged");
  }
  return {type->fields()[index], HasValue(tuple) ? tuple.value.fields()[index] : Value()};
}

Known Tuple(const std::vector<Known>& fields) {
  std::vector<Type> types;
  std::vector<Value> values;
  for (const Known& field : fields) {
    types.push_back(field.type);
    if (HasValue(field)) values.push_back(field.value);
  }
  const bool has_value = values.size() == fields.size();
  return {TupleType(std::move(types)), has_value ? Value::Tuple(std::move(values)) : Value()};
}

/// Whether a value's elements follow from shapes.
class ValueFinder {
 public:
  bool IsKnown(const Expr& expr) const {
    const auto found = known_.find(expr.get());
    return found != known_.end() && found->second;
  }
  void Visit(const Expr& expr) {
    bool is_known = false;
    if (const ConstantNode* constant = As<ConstantNode>(expr)) is_known = IsSizeConstant(constant->checked_type());
    const auto known = [&](const Expr& part) { return IsKnown(part); };
    if (const TupleNode* tuple = As<TupleNode>(expr)) is_known = std::ranges::all_of(tuple->fields(), known);
    if (const TupleGetItemNode* item = As<TupleGetItemNode>(expr)) is_known = IsKnown(item->tuple());
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) {
      is_known = ReadsShapeAlone(*call->op()) || (!call->args().empty() && std::ranges::all_of(call->args(), known));
    }
    known_[expr.get()] = is_known;
  }

 private:
  std::unordered_map<const ExprNode*, bool> known_;
};

}  // namespace

bool IsSizeConstant(const Type& type) {
  const TensorTypeNode* tensor = type == nullptr ? nullptr : AsTensorType(type);
  return tensor != nullptr && tensor->is_static() && !tensor->dtype().is_floating() &&
         NumElements(tensor->static_shape()) <= kMostElements;
}

Type ResultTypeOf(const DynamicKernel& kernel, const std::vector<Type>& types) {
  using Step = DynamicSizes::Step;
  std::vector<Known> all;
  size_t constants = 0;
  for (const Step& step : kernel.sizes.steps) {
    std::vector<Known> args;
    for (const int arg : step.args) args.push_back(all[static_cast<size_t>(arg)]);
    switch (step.kind) {
      case Step::kParameter: all.push_back({types.at(all.size()), {}}); break;
      case Step::kConstant:
        all.push_back({step.type, IsSizeConstant(step.type) ? Value(kernel.step_constants.at(constants++)) : Value()});
        break;
      case Step::kTuple: all.push_back(Tuple(args)); break;
      case Step::kField: all.push_back(Field(args.at(0), step.field)); break;
      case Step::kCall: all.push_back(Call(*step.op, step.attrs, args)); break;
    }
  }
  return all[static_cast<size_t>(kernel.sizes.result)].type;
}

Result<void> HasResultShapes(const Function& function) {
  ValueFinder finder;
  std::string reason;
  PostOrder(function->body(), [&](const Expr& expr) {
    finder.Visit(expr);
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || !reason.empty()) return;
    std::span<const Expr> sizes;
    if (const DynamicOp* dynamic = FindDynamicOp(call->op()->name)) {
      sizes = ValuesOf(*dynamic, std::span<const Expr>(call->args()));
    } else if (MakesSizesOfValues(*call)) {
      sizes = call->args();
    }
    const bool are_known = std::ranges::all_of(sizes, [&](const Expr& size) { return finder.IsKnown(size); });
    if (!are_known) reason = fmt::format("the sizes of '{}' do not follow from shapes", call->op()->name);
  });
  if (!reason.empty()) return Reason{reason, "vm"};
  return {};
}

}  // namespace collage::vm
