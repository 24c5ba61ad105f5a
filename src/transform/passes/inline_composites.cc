// inline_composites.cc: Composite functions that are in no partition become their bodies. A label outside of partitions
// says which function of a library may compute the body; tables of libraries find such bodies by their patterns
// (collage/target/composite_calls.h), so that a search may also compute them otherwise.
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

bool IsPartition(const FunctionNode& function) {
  return function.attrs().IntOr("Primitive", 0) != 0 || function.attrs().Has("Compiler");
}

}  // namespace

Function InlineComposites(const Function& function) {
  if (IsPartition(*function)) return function;
  return AsShared<FunctionNode>(RewriteNodes(
      function, [](const FunctionNode& inner) { return !IsPartition(inner); },
      [](const Expr&, const Expr& expr, const Rewritten&) -> Expr {
        const CallNode* call = As<CallNode>(expr);
        const Function callee = call == nullptr ? nullptr : AsShared<FunctionNode>(call->callee());
        if (!callee || !callee->attrs().Has("Composite") || IsPartition(*callee)) return expr;
        return InlinedCall(callee, call->args());
      }));
}

}  // namespace collage
