// visitor.h: walking and rewriting expressions with an explicit stack: graphs may be 100,000 nodes deep.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// The direct sub-expressions of `expr` in evaluation order: a call's callee and arguments, a let's value and body, a
/// function's body (its parameters are not sub-expressions), a match's data and clause bodies.
std::vector<Expr> Children(const Expr& expr);
/// Element `index` of `Children`, held by `expr` itself; null behind the last.
const Expr* ChildAt(const ExprNode& expr, size_t index);

/// Nodes that a walk skips; a null function skips none.
struct WalkLimits {
  /// Whether a child is visited at all; the root always is.
  std::function<bool(const Expr& child)> visits;
  /// Whether the children of a visited node are looked at, the root's too.
  std::function<bool(const Expr& expr)> enters;
};

/// Visits every node once, children before parents, the root last.
void PostOrder(const Expr& root, const std::function<void(const Expr&)>& visit);
/// As PostOrder, within `limits`.
void PostOrder(const Expr& root, const WalkLimits& limits, const std::function<void(const Expr&)>& visit);
/// As PostOrder, without entering functions other than `root` itself.
void PostOrderInScope(const Expr& root, const std::function<void(const Expr&)>& visit);

/// As PostOrderInScope; `value` is what a let in it binds the variable `expr` to, null for all other expressions.
void PostOrderWithValues(const Expr& root, const std::function<void(const Expr& expr, const Expr& value)>& visit);

/// A copy of `expr` with other children (as many as `Children` gives, in that order); span and device are kept, the
/// type is not.
Expr WithChildren(const Expr& expr, const std::vector<Expr>& children);

/// Rebuilds `root` bottom up, each shared node once. `rewrite` gets every node with its children already rewritten (the
/// same node if none changed) and returns what replaces it; returning the argument keeps it.
Expr Rewrite(const Expr& root, const std::function<Expr(const Expr& expr)>& rewrite);

/// Replaces variables (by identity).
Expr Substitute(const Expr& root, const std::unordered_map<const ExprNode*, Expr>& replacements);

/// Variables used in `root` that nothing in it binds (parameters, let, match), in the order of their first use.
std::vector<Var> FreeVars(const Expr& root);

/// Number of distinct nodes.
size_t CountNodes(const Expr& root);

}  // namespace collage
