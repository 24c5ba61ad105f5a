// fold_constant.cc: what depends on constants only is computed now.
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/eval/evaluate.h"
#include "transform/passes.h"

namespace collage {
namespace {

// A result larger than this, and larger than its arguments, is cheaper to compute than to store.
constexpr size_t kLargestGrowth = size_t{16} << 20;

/// Constant tensors of a call's arguments, tuples flattened; false when one is not constant.
bool ConstantInputs(const CallNode& call, std::vector<Tensor>* inputs) {
  for (const Expr& arg : call.args()) {
    const TupleNode* tuple = As<TupleNode>(arg);
    for (const Expr& leaf : tuple != nullptr ? tuple->fields() : std::vector<Expr>{arg}) {
      const ConstantNode* constant = As<ConstantNode>(leaf);
      if (constant == nullptr) return false;
      inputs->push_back(constant->value());
    }
  }
  return true;
}

Expr FoldCall(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr || call->args().empty()) return expr;
  std::vector<Tensor> inputs;
  if (!ConstantInputs(*call, &inputs) || !ShouldFold(*call->op(), inputs)) return expr;
  const TensorTypeNode* type = AsTensorType(InferType(expr));
  if (type == nullptr || !type->is_static()) return expr;
  size_t input_bytes = 0;
  for (const Tensor& input : inputs) input_bytes += input.size_bytes();
  const size_t bytes = static_cast<size_t>(NumElements(type->static_shape())) * type->dtype().size_bytes();
  if (bytes > kLargestGrowth && bytes > input_bytes) return expr;
  std::vector<Type> types;
  for (const Expr& arg : call->args()) types.push_back(InferType(arg));
  const Expr constant = MakeConstant(EvaluateOp(*call->op(), call->attrs(), types, inputs)[0]);
  constant->share_span(*expr);
  return constant;
}

Expr FoldProjection(const Expr& expr) {
  const TupleGetItemNode* item = As<TupleGetItemNode>(expr);
  const TupleNode* tuple = item == nullptr ? nullptr : As<TupleNode>(item->tuple());
  return tuple == nullptr ? expr : tuple->fields()[item->index()];
}

}  // namespace

Function FoldConstant(const Function& function) {
  return AsShared<FunctionNode>(Rewrite(function, [](const Expr& expr) { return FoldProjection(FoldCall(expr)); }));
}

}  // namespace collage
