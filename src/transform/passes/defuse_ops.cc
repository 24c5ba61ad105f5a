// defuse_ops.cc: the inverse of FuseOps: calls of primitive functions become their bodies.
#include "collage/ir/visitor.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// The function that a call of a kernel calls, if it belongs to no toolchain; else null.
Function Fused(const CallNode& call) {
  Function function = AsShared<FunctionNode>(call.callee());
  if (!function || function->attrs().IntOr("Primitive", 0) == 0 || function->attrs().Has("Compiler")) return nullptr;
  return function;
}

}  // namespace

Function DefuseOps(const Function& function) {
  return AsShared<FunctionNode>(RewriteNodes(function, [](const Expr&, const Expr& expr, const Rewritten&) -> Expr {
    const CallNode* call = As<CallNode>(expr);
    const Function fused = call == nullptr ? nullptr : Fused(*call);
    return fused ? InlinedCall(fused, call->args()) : expr;
  }));
}

}  // namespace collage
