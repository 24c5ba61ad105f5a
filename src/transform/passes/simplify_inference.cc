// simplify_inference.cc: operators that only training needs become what they are at inference.
#include <cmath>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "transform/passes.h"

namespace collage {
namespace {

Expr Typed(Expr expr, const ExprNode& origin) {
  expr->share_span(origin);
  InferType(expr);
  return expr;
}

/// A vector of channels as [C, 1, …], to broadcast against data whose channels are `axis` of `rank`.
Expr PerChannel(const Expr& vector, int axis, int rank, const ExprNode& origin) {
  if (axis == rank - 1) return vector;
  return Typed(MakeCall("expand_dims", {vector}, {{"axis", 1}, {"num_newaxis", rank - 1 - axis}}), origin);
}

/// gamma / sqrt(var + epsilon) * x + (beta - mean * gamma / sqrt(var + epsilon)).
Expr UnpackBatchNorm(const CallNode& call) {
  const Expr& x = call.args()[0];
  const TensorTypeNode* type = AsTensorType(x->checked_type());
  const DataType dtype = type->dtype();
  int axis = static_cast<int>(call.attrs().Int("axis"));
  if (axis < 0) axis += type->rank();
  const auto make = [&](const char* op, std::vector<Expr> args) { return Typed(MakeCall(op, std::move(args)), call); };
  const Expr deviation =
      make("sqrt", {make("add", {call.args()[4], MakeScalar(call.attrs().Double("epsilon"), dtype)})});
  Expr scale = make("divide", {MakeScalar(1, dtype), deviation});
  if (call.attrs().Bool("scale")) scale = make("multiply", {scale, call.args()[1]});
  Expr shift = make("negative", {make("multiply", {call.args()[3], scale})});
  if (call.attrs().Bool("center")) shift = make("add", {shift, call.args()[2]});
  const Expr scaled = make("multiply", {x, PerChannel(scale, axis, type->rank(), call)});
  return make("add", {scaled, PerChannel(shift, axis, type->rank(), call)});
}

}  // namespace

Function SimplifyInference(const Function& function) {
  const Expr result = Rewrite(function, [](const Expr& expr) -> Expr {
    const TupleGetItemNode* item = As<TupleGetItemNode>(expr);
    if (item == nullptr || item->index() != 0) return expr;
    const CallNode* call = As<CallNode>(item->tuple());
    if (call == nullptr || call->op() == nullptr) return expr;
    for (const Expr& arg : call->args()) InferType(arg);
    if (call->op()->name == "nn.batch_norm") return UnpackBatchNorm(*call);
    if (call->op()->name == "nn.dropout") return call->args()[0];
    return expr;
  });
  return AsShared<FunctionNode>(result);
}

}  // namespace collage
