// evaluate.cc: evaluation in post-order; a value is dropped after its last use.
#include "ir/eval/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/interpreter.h"
#include "ir/eval/random_draws.h"
#include "ir/eval/random_rounding.h"
#include "ir/ops/random/random.h"
#include "ir/place.h"

namespace collage {
namespace {

using Values = std::vector<Tensor>;

class Evaluator {
 public:
  explicit Evaluator(EvaluateOptions& options) : options_(options) {}

  /// `is_fixed`: whether the inputs are the same in every run, since constants alone made them.
  Values Run(const Function& function, std::span<const Tensor> inputs, bool is_fixed = false) {
    Bind(*function, inputs, is_fixed);
    CountUses(function->body());
    PostOrderInScope(function->body(), [&](const Expr& expr) {
      if (IsFixed(expr)) fixed_.insert(expr.get());
      values_[expr.get()] = Compute(expr);
      for (const Expr& child : Children(expr)) Use(child);
    });
    return values_.at(function->body().get());
  }

 private:
  void Bind(const FunctionNode& function, std::span<const Tensor> inputs, bool is_fixed) {
    size_t next = 0;
    for (const Var& param : function.params()) {
      const Type type = param->checked_type() ? param->checked_type() : param->type_annotation();
      Values values;
      for (const Type& leaf : FlattenTensorTypes(type)) {
        if (next >= inputs.size()) throw Error(ErrorCategory::kInput, "too few inputs");
        const Tensor& tensor = inputs[next++];
        const TensorTypeNode* wanted = AsTensorType(leaf);
        if (tensor.dtype() != wanted->dtype() || (wanted->is_static() && wanted->static_shape() != tensor.shape())) {
          throw Error(ErrorCategory::kInput,
                      fmt::format("input '{}' wants {}, got {} {}", param->name(), ToString(leaf),
                                  tensor.dtype().ToString(), ToString(tensor.shape())));
        }
        values.push_back(tensor);
      }
      values_[param.get()] = std::move(values);
      uses_[param.get()] = 1 << 30;
      if (is_fixed) fixed_.insert(param.get());
    }
  }

  /// Whether `expr` depends on constants alone. Compilers compute it ahead, rounding as the reference does.
  bool IsFixed(const Expr& expr) const {
    if (expr->kind() == ExprKind::kVar) return fixed_.contains(expr.get());
    if (const CallNode* call = As<CallNode>(expr)) return AreFixed(call->args());
    return AreFixed(Children(expr));
  }
  bool AreFixed(const std::vector<Expr>& exprs) const {
    return std::all_of(exprs.begin(), exprs.end(), [&](const Expr& expr) { return fixed_.contains(expr.get()); });
  }

  void CountUses(const Expr& body) {
    PostOrderInScope(body, [&](const Expr& expr) {
      if (expr->kind() == ExprKind::kFunction) return;
      for (const Expr& child : Children(expr)) ++uses_[child.get()];
    });
    ++uses_[body.get()];
  }

  void Use(const Expr& child) {
    auto it = uses_.find(child.get());
    if (it != uses_.end() && --it->second == 0) values_.erase(child.get());
  }

  Values Compute(const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kVar: {
        auto it = values_.find(expr.get());
        if (it == values_.end()) {
          throw Error(ErrorCategory::kInput,
                      "free variable '%" + static_cast<const VarNode&>(*expr).name() + "' has no value");
        }
        return it->second;
      }
      case ExprKind::kConstant: return {static_cast<const ConstantNode&>(*expr).value()};
      case ExprKind::kOp:
      case ExprKind::kFunction: return {};
      case ExprKind::kTuple: {
        Values all;
        for (const Expr& field : static_cast<const TupleNode&>(*expr).fields()) {
          const Values& values = values_.at(field.get());
          all.insert(all.end(), values.begin(), values.end());
        }
        return all;
      }
      case ExprKind::kTupleGetItem: return Project(static_cast<const TupleGetItemNode&>(*expr));
      case ExprKind::kCall: return Call(static_cast<const CallNode&>(*expr));
      default:
        throw Error(ErrorCategory::kUnsupported, "the evaluator does not cover this kind of expression yet",
                    PlaceOf(expr->span()));
    }
  }

  Values Project(const TupleGetItemNode& item) {
    const TupleTypeNode* type = AsTupleType(InferType(item.tuple()));
    size_t first = 0;
    for (int i = 0; i < item.index(); ++i) first += FlattenTensorTypes(type->fields()[i]).size();
    const size_t count = FlattenTensorTypes(type->fields()[item.index()]).size();
    const Values& all = values_.at(item.tuple().get());
    return {all.begin() + static_cast<int64_t>(first), all.begin() + static_cast<int64_t>(first + count)};
  }

  /// `type` with the shapes that `values` have, where it leaves sizes open.
  static Type Actual(const Type& type, const Values& values, size_t* next) {
    if (const TensorTypeNode* tensor = AsTensorType(type)) {
      const Tensor& value = values[(*next)++];
      return tensor->is_static() ? type : TensorType(value.shape(), value.dtype());
    }
    std::vector<Type> fields;
    for (const Type& field : AsTupleType(type)->fields()) fields.push_back(Actual(field, values, next));
    return TupleType(std::move(fields));
  }

  Values Call(const CallNode& call) {
    Values inputs;
    std::vector<Type> types;
    for (const Expr& arg : call.args()) {
      const Values& values = values_.at(arg.get());
      inputs.insert(inputs.end(), values.begin(), values.end());
      size_t next = 0;
      types.push_back(Actual(InferType(arg), values, &next));
    }
    const bool is_fixed = fixed_.contains(&call);
    if (const OpDef* op = call.op()) {
      if (is_fixed) {
        return EvaluateOp(*op, call.attrs(), types, inputs,
                          {.on_operator = options_.on_operator, .draws = options_.draws});
      }
      ++options_.seed;
      return EvaluateOp(*op, call.attrs(), types, inputs, options_);
    }
    if (Function function = AsShared<FunctionNode>(call.callee())) {
      return Evaluator(options_).Run(function, inputs, is_fixed);
    }
    throw Error(ErrorCategory::kUnsupported, "the evaluator calls operators and functions only", PlaceOf(call.span()));
  }

  EvaluateOptions& options_;  ///< whose seed is another one for every call
  std::unordered_map<const ExprNode*, Values> values_;
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_set<const ExprNode*> fixed_;  ///< depend on constants alone
};

/// Far from the seeds that count up from those of others.
uint64_t SpreadSeed(uint64_t seed) { return (seed + 1) * 0xd1342543de82ef95u; }

}  // namespace

std::vector<Tensor> EvaluateOp(const OpDef& op, const Attrs& attrs, std::span<const Type> arg_types,
                               std::span<const Tensor> inputs, const EvaluateOptions& options) {
  const Result<Type> type = op.relation({arg_types, attrs});
  if (!type.ok()) throw Error(ErrorCategory::kInput, fmt::format("'{}' {}", op.name, type.reason().text));
  if (!op.reference && !DrawsNumbers(op))
    throw Error(ErrorCategory::kUnsupported, fmt::format("'{}' computes nothing", op.name));
  std::vector<Tensor> outputs;
  for (const Type& leaf : FlattenTensorTypes(*type)) {
    const TensorTypeNode* tensor = AsTensorType(leaf);
    outputs.push_back(tensor->is_static() ? Tensor::Empty(tensor->static_shape(), tensor->dtype()) : Tensor());
  }
  if (DrawsNumbers(op)) {
    RandomDraws of_new_run;
    DrawNumbers(op, attrs, outputs[0], options.draws != nullptr ? *options.draws : of_new_run);
  } else if (options.rounding == Rounding::kNearest) {
    op.reference(inputs, attrs, outputs);
  } else {
    EvaluateRoundingAtRandom(op, attrs, arg_types, inputs, options, outputs);
  }
  if (options.on_operator) options.on_operator();
  return outputs;
}

bool ShouldFold(const OpDef& op, std::span<const Tensor> inputs) {
  if (DrawsNumbers(op)) return false;
  return op.name != "qnn.dequantize" || inputs[0].dtype().bits > 8 || inputs[0].num_elements() == 1;
}

std::vector<Tensor> Evaluate(const Function& function, std::span<const Tensor> inputs, const EvaluateOptions& options) {
  bool is_dataflow = true;
  PostOrder(function, [&](const Expr& expr) {
    const ExprKind kind = expr->kind();
    is_dataflow = is_dataflow && (kind == ExprKind::kVar || kind == ExprKind::kConstant || kind == ExprKind::kOp ||
                                  kind == ExprKind::kTuple || kind == ExprKind::kTupleGetItem ||
                                  kind == ExprKind::kCall || kind == ExprKind::kFunction);
    const CallNode* call = As<CallNode>(expr);
    is_dataflow =
        is_dataflow && (call == nullptr || call->op() != nullptr || As<FunctionNode>(call->callee()) != nullptr);
  });
  EvaluateOptions own = options;
  own.seed = SpreadSeed(options.seed);
  RandomDraws of_new_run;
  if (own.draws == nullptr) own.draws = &of_new_run;
  if (is_dataflow) return Evaluator(own).Run(function, inputs);
  size_t next = 0;
  const auto take = [&]() -> Tensor {
    if (next >= inputs.size()) throw Error(ErrorCategory::kInput, "too few inputs");
    return inputs[next++];
  };
  std::vector<Value> args;
  for (const Var& param : function->params()) {
    args.push_back(UnflattenTensors(param->checked_type() ? param->checked_type() : param->type_annotation(), take));
  }
  return FlattenTensors(Interpret(IRModule::FromFunction(function), "main", std::move(args), {.evaluate = own}));
}

}  // namespace collage
