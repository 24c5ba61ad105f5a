// to_graph_normal_form.cc: let variables become shared nodes. Recursive functions keep their name, and in functions
// that write references everything stays where it is, since order counts.
#include <unordered_set>

#include "collage/ir/visitor.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// The variables of `function` that their own values use.
std::unordered_set<const ExprNode*> RecursiveVars(const Function& function) {
  // A variable is recursive when it is met before its value is complete. Only function values can be, so that walking
  // these costs little.
  std::unordered_set<const ExprNode*> recursive;
  PostOrder(function, [&](const Expr& expr) {
    const LetNode* let = As<LetNode>(expr);
    if (let == nullptr || let->value()->kind() != ExprKind::kFunction) return;
    for (const Var& var : FreeVars(let->value())) {
      if (var == let->var()) recursive.insert(var.get());
    }
  });
  return recursive;
}

}  // namespace

Function ToGraphNormalForm(const Function& function) {
  if (WritesReferences(function)) return function;
  const std::unordered_set<const ExprNode*> recursive = RecursiveVars(function);
  std::unordered_map<const ExprNode*, const LetNode*> lets;
  PostOrder(function, [&](const Expr& expr) {
    const LetNode* let = As<LetNode>(expr);
    if (let != nullptr && !recursive.contains(let->var().get())) lets[let->var().get()] = let;
  });
  return AsShared<FunctionNode>(
      RewriteNodes(function, [&](const Expr& original, const Expr& expr, const Rewritten& done) -> Expr {
        auto it = lets.find(original.get());
        if (it != lets.end()) return done.at(it->second->value().get());
        const LetNode* let = As<LetNode>(original);
        if (let == nullptr || !lets.contains(let->var().get())) return expr;
        return done.at(let->body().get());
      }));
}

}  // namespace collage
