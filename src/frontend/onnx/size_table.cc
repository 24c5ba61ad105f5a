// size_table.cc: symbols, arithmetic on integer tensors of sizes, and the expressions that compute sizes in a run.
#include "frontend/onnx/size_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "ir/ops/dynamic.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

// Longer tensors of integers are data, not sizes.
constexpr int64_t kMostElements = 256;

Expr Typed(Expr expr) {
  InferType(expr);
  return expr;
}

Expr Numbers(const std::vector<int64_t>& values) {
  return MakeConstant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, kInt64, values));
}

/// Narrower integers would have to wrap around.
bool MayHoldSizes(const TensorTypeNode& type) {
  const DataType dtype = type.dtype();
  return type.is_static() && (dtype == kInt64 || dtype == kInt32 || dtype == kBool) &&
         NumElements(type.static_shape()) <= kMostElements;
}

// ---- what operators do to elements ----

using Binary = std::optional<SymbolicSize> (*)(const SymbolicSize& a, const SymbolicSize& b);

std::optional<SymbolicSize> Holds(bool is_true, bool is_false) {
  if (is_true) return 1;
  if (is_false) return 0;
  return std::nullopt;
}

bool IsBelow(const SymbolicSize& a, const SymbolicSize& b) { return IsAtMost(a + 1, b); }

std::optional<SymbolicSize> Floored(const SymbolicSize& a, const SymbolicSize& b) {
  if (b.is_known() ? b.known() == 0 : b.lower_bound() < 1) return std::nullopt;
  return SymbolicSize::FloorDivide(a, b);
}

/// Division as integers have it, towards 0: that of non-negative numbers rounds down.
std::optional<SymbolicSize> Truncated(const SymbolicSize& a, const SymbolicSize& b) {
  if (a.is_known() && b.is_known() && b.known() != 0 && b.known() != -1) return a.known() / b.known();
  return a.lower_bound() >= 0 && b.lower_bound() > 0 ? Floored(a, b) : std::nullopt;
}

std::optional<SymbolicSize> Rest(const SymbolicSize& a, const SymbolicSize& b) {
  const auto quotient = Floored(a, b);
  return quotient ? std::optional(a - *quotient * b) : std::nullopt;
}

const std::map<std::string_view, Binary>& BinaryRules() {
  static const std::map<std::string_view, Binary> rules{
      {"add", [](const auto& a, const auto& b) -> std::optional<SymbolicSize> { return a + b; }},
      {"subtract", [](const auto& a, const auto& b) -> std::optional<SymbolicSize> { return a - b; }},
      {"multiply", [](const auto& a, const auto& b) -> std::optional<SymbolicSize> { return a * b; }},
      {"minimum",
       [](const auto& a, const auto& b) -> std::optional<SymbolicSize> { return SymbolicSize::Minimum(a, b); }},
      {"maximum",
       [](const auto& a, const auto& b) -> std::optional<SymbolicSize> { return SymbolicSize::Maximum(a, b); }},
      {"divide", Truncated},
      {"floor_divide", Floored},
      {"floor_mod", Rest},
      {"equal", [](const auto& a, const auto& b) { return Holds(a == b, IsBelow(a, b) || IsBelow(b, a)); }},
      {"not_equal", [](const auto& a, const auto& b) { return Holds(IsBelow(a, b) || IsBelow(b, a), a == b); }},
      {"less", [](const auto& a, const auto& b) { return Holds(IsBelow(a, b), IsAtMost(b, a)); }},
      {"less_equal", [](const auto& a, const auto& b) { return Holds(IsAtMost(a, b), IsBelow(b, a)); }},
      {"greater", [](const auto& a, const auto& b) { return Holds(IsBelow(b, a), IsAtMost(a, b)); }},
      {"greater_equal", [](const auto& a, const auto& b) { return Holds(IsAtMost(b, a), IsBelow(a, b)); }},
  };
  return rules;
}

/// Returns, for each element of a result, its index in an operand that is broadcast to its shape.
std::vector<size_t> Sources(const Shape& shape, const Shape& result) {
  const std::vector<int64_t> strides = BroadcastStrides(shape, result);
  std::vector<size_t> sources;
  ForEachIndex(result, [&](const std::vector<int64_t>& index) {
    sources.push_back(static_cast<size_t>(Offset(index, strides)));
  });
  return sources;
}

}  // namespace

// ---- lists of sizes ----

bool Sizes::is_known() const {
  return std::ranges::all_of(*this, [](const SymbolicSize& size) { return size.is_known(); });
}

Shape Sizes::known() const {
  Shape shape;
  for (const SymbolicSize& size : *this) shape.push_back(size.known());
  return shape;
}

SymbolicSize Sizes::Product() const {
  SymbolicSize product = 1;
  for (const SymbolicSize& size : *this) product *= size;
  return product;
}

std::string Sizes::ToString() const {
  std::string text;
  for (const SymbolicSize& size : *this) text += (text.empty() ? "" : ", ") + size.ToString();
  return "[" + text + "]";
}

// ---- symbols ----

SymbolicSize SizeTable::NewSymbol(const std::string& name, const Expr& value, int dim, SizeRange range) {
  SymbolicSize symbol = SymbolicSize::Symbol(name, static_cast<int64_t>(origins_.size()), range);
  origins_.emplace(symbol.terms()[0].factors[0].get(), Origin{symbol, value, dim});
  return symbol;
}

SymbolicSize SizeTable::Named(const std::string& name, SizeRange range) {
  const auto known = named_.find(name);
  return known != named_.end() ? known->second : named_.emplace(name, NewSymbol(name, nullptr, 0, range)).first->second;
}

void SizeTable::FoundIn(const Var& param) {
  const std::vector<Dim>& shape = AsTensorType(param->checked_type())->shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_any()) continue;
    const SymbolicSize size = *shape[i].symbolic();
    const bool is_symbol = size.terms().size() == 1 && size.constant() == 0;
    if (!is_symbol) continue;  // a sum of symbols that are found elsewhere
    Origin& origin = origins_.at(size.terms()[0].factors[0].get());
    if (origin.value != nullptr) continue;
    origin.value = param;
    origin.dim = static_cast<int>(i);
  }
}

Type SizeTable::WithSymbols(const Type& type, const Expr& value) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr) return type;
  std::vector<Dim> shape = tensor->shape();
  bool is_changed = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].symbolic()) continue;
    const std::string& node = value->span().source;
    shape[i] = Dim::Of(NewSymbol(fmt::format("{}[{}]", node.empty() ? "value" : node, i), value, static_cast<int>(i)));
    is_changed = true;
  }
  return is_changed ? TensorType(std::move(shape), tensor->dtype()) : type;
}

void SizeTable::NameSizes(const Expr& expr) {
  const Type type = expr->checked_type();
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr) return expr->set_checked_type(WithSymbols(type, expr));
  std::vector<Type> fields;
  for (size_t i = 0; i < tuple->fields().size(); ++i) {
    const Type& field = tuple->fields()[i];
    const TensorTypeNode* tensor = AsTensorType(field);
    const bool is_named = tensor == nullptr || std::ranges::all_of(tensor->shape(), [](const Dim& dim) {
                            return dim.symbolic().has_value();
                          });
    fields.push_back(is_named ? field : WithSymbols(field, Typed(MakeTupleGetItem(expr, static_cast<int>(i)))));
  }
  expr->set_checked_type(TupleType(std::move(fields)));
}

Sizes SizeTable::Of(const TensorTypeNode& type) {
  Sizes sizes;
  for (const Dim& dim : type.shape()) {
    const auto size = dim.symbolic();
    COLLAGE_CHECK(size.has_value()) << "a dimension without a symbol";
    sizes.push_back(*size);
  }
  return sizes;
}

// ---- integers that are sizes ----

std::optional<Sizes> SizeTable::ValuesOf(const Expr& expr) const {
  if (const ConstantNode* constant = As<ConstantNode>(expr)) {
    if (!MayHoldSizes(*AsTensorType(expr->checked_type()))) return std::nullopt;
    return Sizes(constant->value().ToInts());
  }
  const auto known = values_.find(expr.get());
  return known == values_.end() ? std::nullopt : std::optional(known->second.values);
}

void SizeTable::SetValues(const Expr& expr, Sizes values) {
  from_sizes_.emplace(expr.get(), expr);
  values_.insert_or_assign(expr.get(), Values{expr, std::move(values)});
}

bool SizeTable::IsComputedFromSizes(const Expr& expr) const {
  return As<ConstantNode>(expr) != nullptr || from_sizes_.contains(expr.get());
}

Expr SizeTable::Follow(const Expr& expr) {
  if (const TupleGetItemNode* item = As<TupleGetItemNode>(expr)) {
    if (IsComputedFromSizes(item->tuple())) from_sizes_.emplace(expr.get(), expr);
    return nullptr;
  }
  if (As<TupleNode>(expr) != nullptr) {
    if (std::ranges::all_of(Children(expr), [&](const Expr& field) { return IsComputedFromSizes(field); })) {
      from_sizes_.emplace(expr.get(), expr);
    }
    return nullptr;
  }
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr) return nullptr;
  const bool is_shape = ReadsShapeAlone(*call->op());
  if (!is_shape && !std::ranges::all_of(call->args(), [&](const Expr& arg) { return IsComputedFromSizes(arg); })) {
    return nullptr;
  }
  from_sizes_.emplace(expr.get(), expr);
  // Constants alone are evaluated as any others.
  if (!is_shape &&
      std::ranges::all_of(call->args(), [](const Expr& arg) { return As<ConstantNode>(arg) != nullptr; })) {
    return nullptr;
  }
  const std::optional<Sizes> values = Evaluate(*call);
  if (!values) return nullptr;
  if (!values->is_known()) {
    SetValues(expr, *values);
    return nullptr;
  }
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  const Expr constant =
      MakeConstant(Tensor::Of<int64_t>(type->static_shape(), kInt64, values->known()).Cast(type->dtype()));
  constant->share_span(*expr);
  return constant;
}

namespace {

/// Operands of a call on sizes, fields of tuples one by one.
struct SizeOperands {
  std::vector<Sizes> values;
  std::vector<Shape> shapes;
  std::vector<Type> types;        ///< of arguments: tuples are one
  std::vector<Tensor> positions;  ///< of elements in `all`, and constants that say where to move them
  Sizes all;
};

/// Nothing where an operand is not known. Operands behind the first one of a call that `moves` elements are numbers.
std::optional<SizeOperands> OperandsOf(const SizeTable& table, const CallNode& call, bool moves) {
  SizeOperands operands;
  for (size_t i = 0; i < call.args().size(); ++i) {
    const Expr& arg = call.args()[i];
    const TupleNode* tuple = As<TupleNode>(arg);
    std::vector<Type> fields;
    for (const Expr& leaf : tuple != nullptr ? tuple->fields() : std::vector<Expr>{arg}) {
      const TensorTypeNode* tensor = AsTensorType(leaf->checked_type());
      std::optional<Sizes> values = tensor == nullptr ? std::nullopt : table.ValuesOf(leaf);
      if (!values) return std::nullopt;
      const Shape& shape = operands.shapes.emplace_back(tensor->static_shape());
      if (moves && i > 0) {
        if (!values->is_known()) return std::nullopt;
        const ConstantNode* constant = As<ConstantNode>(leaf);
        operands.positions.push_back(constant != nullptr ? constant->value()
                                                         : Tensor::Of<int64_t>(shape, kInt64, values->known()));
        fields.push_back(TensorType(shape, operands.positions.back().dtype()));
      } else {
        std::vector<int64_t> numbers;
        for (size_t at = 0; at < values->size(); ++at) {
          numbers.push_back(static_cast<int64_t>(operands.all.size() + at));
        }
        operands.positions.push_back(Tensor::Of<int64_t>(shape, kInt64, numbers));
        fields.push_back(TensorType(shape, kInt64));
        operands.all.insert(operands.all.end(), values->begin(), values->end());
      }
      operands.values.push_back(*std::move(values));
    }
    operands.types.push_back(tuple != nullptr ? TupleType(fields) : fields[0]);
  }
  return operands;
}

Sizes Moved(const CallNode& call, const SizeOperands& operands) {
  Sizes values;
  for (const int64_t position : EvaluateOp(*call.op(), call.attrs(), operands.types, operands.positions)[0].ToInts()) {
    values.push_back(operands.all[static_cast<size_t>(position)]);
  }
  return values;
}

/// Whether each size is not 0: 1 or 0.
std::optional<Sizes> Truths(const Sizes& sizes) {
  Sizes values;
  for (const SymbolicSize& size : sizes) {
    const auto truth = BinaryRules().at("not_equal")(size, 0);
    if (!truth) return std::nullopt;
    values.push_back(*truth);
  }
  return values;
}

Sizes Clipped(const Sizes& sizes, double low, double high) {
  constexpr double kMost = 9e15;  // beyond it, doubles are no exact integers; such a bound is none
  Sizes values;
  for (const SymbolicSize& size : sizes) {
    SymbolicSize clipped = size;
    if (low > -kMost) clipped = SymbolicSize::Maximum(clipped, static_cast<int64_t>(low));
    if (high < kMost) clipped = SymbolicSize::Minimum(clipped, static_cast<int64_t>(high));
    values.push_back(clipped);
  }
  return values;
}

/// The condition is known.
Sizes Chosen(const SizeOperands& operands, const Shape& result) {
  const std::vector<size_t> condition = Sources(operands.shapes[0], result), x = Sources(operands.shapes[1], result),
                            y = Sources(operands.shapes[2], result);
  Sizes values;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool holds = operands.values[0][condition[i]].known() != 0;
    values.push_back(holds ? operands.values[1][x[i]] : operands.values[2][y[i]]);
  }
  return values;
}

/// Nothing for operators that have no rule, and where sizes decide.
std::optional<Sizes> ByBinaryRule(const std::string& name, const SizeOperands& operands, const Shape& result) {
  const auto rule = BinaryRules().find(name);
  if (rule == BinaryRules().end()) return std::nullopt;
  const std::vector<size_t> a = Sources(operands.shapes[0], result), b = Sources(operands.shapes[1], result);
  Sizes values;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto value = rule->second(operands.values[0][a[i]], operands.values[1][b[i]]);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

}  // namespace

std::optional<Sizes> SizeTable::Evaluate(const CallNode& call) const {
  const TensorTypeNode* type = AsTensorType(call.checked_type());
  if (type == nullptr || !MayHoldSizes(*type)) return std::nullopt;
  const bool moves = call.op()->moves_elements;
  const std::optional<SizeOperands> operands = OperandsOf(*this, call, moves);
  if (!operands) return std::nullopt;
  if (moves) return Moved(call, *operands);
  const std::string& name = call.op()->name;
  const Shape result = type->static_shape();
  const std::vector<Sizes>& values = operands->values;
  if (name == "cast") return type->dtype().is_bool() ? Truths(values[0]) : values[0];
  if (name == "negative") {
    Sizes negative;
    for (const SymbolicSize& size : values[0]) negative.push_back(SymbolicSize(0) - size);
    return negative;
  }
  if (name == "clip") return Clipped(values[0], call.attrs().Double("a_min"), call.attrs().Double("a_max"));
  if (name == "where" && values[0].is_known()) return Chosen(*operands, result);
  const bool is_sum = name == "sum";
  if ((is_sum || name == "prod") && result == Shape(result.size(), 1)) {
    SymbolicSize reduced = is_sum ? 0 : 1;
    for (const SymbolicSize& size : values[0]) reduced = is_sum ? reduced + size : reduced * size;
    return Sizes{reduced};
  }
  return ByBinaryRule(name, *operands, result);
}

// ---- expressions that compute sizes ----

Expr SizeTable::ComputeFactor(const SymbolicSize::Factor& factor) {
  using Kind = SymbolicSize::Factor::Kind;
  if (factor.kind == Kind::kSymbol) {
    const Origin& origin = origins_.at(&factor);
    const Expr sizes = Typed(MakeCall("shape_of", {origin.value}, Attrs{{"dtype", "int64"}}));
    return Typed(MakeCall("strided_slice", {sizes},
                          Attrs{{"begin", AttrValue::List{origin.dim}}, {"end", AttrValue::List{origin.dim + 1}}}));
  }
  const char* op = factor.kind == Kind::kFloorDivide ? "floor_divide"
                   : factor.kind == Kind::kMinimum   ? "minimum"
                   : factor.kind == Kind::kMaximum   ? "maximum"
                                                     : "multiply";
  return Typed(MakeCall(op, {ComputeOne(factor.operands[0]), ComputeOne(factor.operands[1])}));
}

Expr SizeTable::ComputeOne(const SymbolicSize& size) {
  if (size.is_known()) return Numbers({size.known()});
  const auto known = computed_.find(size);
  if (known != computed_.end()) return known->second;
  Expr sum = size.constant() == 0 ? nullptr : Numbers({size.constant()});
  for (const SymbolicSize::Term& term : size.terms()) {
    Expr product;
    for (const SymbolicSize::FactorRef& factor : term.factors) {
      const Expr value = ComputeFactor(*factor);
      product = product == nullptr ? value : Typed(MakeCall("multiply", {product, value}));
    }
    if (term.coefficient != 1) product = Typed(MakeCall("multiply", {product, Numbers({term.coefficient})}));
    sum = sum == nullptr ? product : Typed(MakeCall("add", {product, sum}));
  }
  SetValues(sum, {size});
  computed_.emplace(size, sum);
  return sum;
}

Expr SizeTable::Compute(const Sizes& sizes) {
  if (sizes.is_known()) return Numbers(sizes.known());
  // Numbers side by side are one constant.
  std::vector<Expr> parts;
  std::vector<int64_t> numbers;
  const auto add_numbers = [&] {
    if (!numbers.empty()) parts.push_back(Numbers(numbers));
    numbers.clear();
  };
  for (const SymbolicSize& size : sizes) {
    if (size.is_known()) {
      numbers.push_back(size.known());
    } else {
      add_numbers();
      parts.push_back(ComputeOne(size));
    }
  }
  add_numbers();
  if (parts.size() == 1) return parts[0];
  const Expr all = Typed(MakeCall("concatenate", {Typed(MakeTuple(std::move(parts)))}, Attrs{{"axis", 0}}));
  SetValues(all, sizes);
  return all;
}

}  // namespace collage
