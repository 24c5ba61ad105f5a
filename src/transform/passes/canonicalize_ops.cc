// canonicalize_ops.cc: operators that only abbreviate others are written out, so that fusion sees plain broadcasting.
#include "collage/ir/infer_type.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// bias_add(x, b) → add(x, b as [C, 1, …]).
Expr UnpackBiasAdd(const CallNode& call) {
  const int rank = AsTensorType(InferType(call.args()[0]))->rank();
  const auto axis = static_cast<int64_t>(FromFront(call.attrs().Int("axis"), rank));
  Expr bias = call.args()[1];
  InferType(bias);
  if (axis != rank - 1) bias = TypedCall("expand_dims", {bias}, call, {{"axis", 1}, {"num_newaxis", rank - axis - 1}});
  return TypedCall("add", {call.args()[0], bias}, call);
}

}  // namespace

Function CanonicalizeOps(const Function& function) {
  return AsShared<FunctionNode>(RewriteNodes(function, [](const Expr&, const Expr& expr, const Rewritten&) {
    const CallNode* call = AsCallOf(expr, "nn.bias_add");
    return call == nullptr ? expr : UnpackBiasAdd(*call);
  }));
}

}  // namespace collage
