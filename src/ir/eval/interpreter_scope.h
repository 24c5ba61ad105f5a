// interpreter_scope.h: which function of a nest evaluates a node, and what closures must take along.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collage/ir/expr.h"
#include "ir/node_map.h"

namespace collage {

/// The functions nested in one global function, and which of them each node belongs to.
///
/// A node belongs to the innermost function that holds all its uses; a variable to the function that binds it. So in
///
///     fn (%x) { %0 = exp(%x); %f = fn (%y) { %1 = add(%y, %0); tanh(%1) }; add(%0, %f(%x)) }
///
/// `%0` is evaluated once per call of the outer function, before the closure `%f` that captures it is made, and `%1`
/// once per call of `%f`. Branches and clauses are no scopes: what they share is evaluated in whichever is taken.
/// Linear in the number of uses, times the depth of nested functions for what closures capture.
class ScopeAnalysis {
 public:
  explicit ScopeAnalysis(const Function& root);

  /// Returns the captures of a closure of `function`: values of outer functions that it or functions within it use, in
  /// the order in which they are captured. Empty for the root and for functions without free variables.
  const std::vector<Expr>& Captures(const FunctionNode& function) const;
  /// The variable that a `let` binds to `function` and by which its body calls it; null when it does not call itself.
  const VarNode* SelfOf(const FunctionNode& function) const;
  /// Used more than once, so that its value must be kept.
  bool IsShared(const ExprNode& node) const;

 private:
  struct Scope {
    int parent;
    int depth;
    const FunctionNode* function;
    std::vector<Expr> captures;
    std::unordered_set<const ExprNode*> captured;
  };

  void AddBinders(const Expr& expr, int scope);
  void AddPattern(const Pattern& pattern, int scope);
  void Bind(const Var& var, int scope);
  void AddUse(const Expr& child, int scope);
  int CommonScope(int a, int b) const;
  void Capture(const Expr& child, int scope);
  int OwnerOf(const Expr& expr) const { return uses_.Find(expr.get())->owner; }

  std::vector<Scope> scopes_;
  NodeMap<int> index_;  // function → its place in scopes_
  /// Function that a node belongs to, and number of its uses.
  struct Use {
    int owner;
    int count;
  };
  NodeMap<Use> uses_;
  std::unordered_map<const FunctionNode*, const VarNode*> bound_to_;  // by a let
  std::unordered_set<const FunctionNode*> recursive_;
};

}  // namespace collage
