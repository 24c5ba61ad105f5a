// rewriting.h: what passes share: rewriting with the original node at hand, and small questions about expressions.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/module.h"
#include "collage/ir/op.h"

namespace collage {

/// Rewritten nodes, by the original.
using Rewritten = std::unordered_map<const ExprNode*, Expr>;

/// Rebuilds `root` bottom up as `Rewrite` does. `rewrite` gets the original node and the same with rewritten children,
/// and returns what replaces it; `done` holds the replacement of every node visited before. The body of a let is
/// visited behind its value.
Expr RewriteNodes(
    const Expr& root,
    const std::function<Expr(const Expr& original, const Expr& rewritten, const Rewritten& done)>& rewrite);
/// As above, without entering functions for which `enters` is false; these are handed to `rewrite` as they are.
Expr RewriteNodes(
    const Expr& root, const std::function<bool(const FunctionNode&)>& enters,
    const std::function<Expr(const Expr& original, const Expr& rewritten, const Rewritten& done)>& rewrite);
/// False for functions that are a kernel already: attribute Primitive, Composite or Compiler.
bool IsOrdinary(const FunctionNode& function);

/// The call if `expr` calls operator `name`, else null.
const CallNode* AsCallOf(const Expr& expr, std::string_view name);
/// The operator that `expr` calls; null when it is no call of one.
const OpDef* CalledOp(const Expr& expr);

/// A call with the span of `origin` and its type inferred; the arguments' types must be inferable.
Expr TypedCall(std::string_view op, std::vector<Expr> args, const ExprNode& origin, Attrs attrs = {});

/// How often each node is used by others, the result once more.
std::unordered_map<const ExprNode*, int> CountUses(const Expr& root);

/// A copy of `function` with fresh parameters and let variables, so that it can be inserted a second time.
Function WithFreshVars(const Function& function);

/// The body of `function` with `args` in place of its parameters.
Expr InlinedCall(const Function& function, const std::vector<Expr>& args);

/// Whether anything in the module writes references: then the order of evaluation counts.
bool WritesReferences(const IRModule& module);
/// Whether anything in `root` does, inner functions included.
bool WritesReferences(const Expr& root);

/// `axis` counted from the front.
inline size_t FromFront(int64_t axis, int rank) { return static_cast<size_t>(axis < 0 ? axis + rank : axis); }

}  // namespace collage
