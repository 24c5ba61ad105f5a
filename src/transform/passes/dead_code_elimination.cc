// dead_code_elimination.cc: variables that nothing uses are not bound. Values that change references are kept.
#include <unordered_set>

#include "collage/ir/visitor.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

/// Whether evaluating `expr` may write a reference, in a module that does write some: it writes itself, or calls
/// something that may.
bool MayHaveEffects(const Expr& expr) {
  bool found = false;
  PostOrderInScope(expr, [&](const Expr& node) {
    const CallNode* call = As<CallNode>(node);
    const bool unknown_call =
        call != nullptr && call->op() == nullptr && call->callee()->kind() != ExprKind::kConstructor;
    found = found || unknown_call || node->kind() == ExprKind::kRefWrite;
  });
  return found;
}

/// The let variables whose values are needed: a variable is needed when something that is needed uses it.
class Liveness {
 public:
  explicit Liveness(bool has_effects) : has_effects_(has_effects) {}

  std::unordered_set<const ExprNode*> Find(const Expr& root) {
    PostOrder(root, [&](const Expr& expr) {
      if (const LetNode* let = As<LetNode>(expr)) lets_[let->var().get()] = let;
    });
    Reach(root);
    while (!stack_.empty()) {
      const Expr expr = std::move(stack_.back());
      stack_.pop_back();
      Visit(expr);
    }
    return std::move(live_);
  }

 private:
  void Reach(const Expr& expr) {
    if (expr && seen_.insert(expr.get()).second) stack_.push_back(expr);
  }

  void Visit(const Expr& expr) {
    if (const LetNode* let = As<LetNode>(expr)) {
      if (has_effects_ && MayHaveEffects(let->value())) {
        live_.insert(let->var().get());
        Reach(let->value());
      }
      return Reach(let->body());
    }
    if (expr->kind() == ExprKind::kVar) {
      auto it = lets_.find(expr.get());
      if (it == lets_.end()) return;
      live_.insert(expr.get());
      return Reach(it->second->value());
    }
    for (const Expr& child : Children(expr)) Reach(child);
  }

  const bool has_effects_;
  std::unordered_map<const ExprNode*, const LetNode*> lets_;
  std::unordered_set<const ExprNode*> live_, seen_;
  std::vector<Expr> stack_;
};

}  // namespace

Function DeadCodeElimination(const Function& function, const IRModule& module, const PassContext&) {
  const std::unordered_set<const ExprNode*> live = Liveness(WritesReferences(module)).Find(function);
  return AsShared<FunctionNode>(RewriteNodes(function, [&](const Expr&, const Expr& expr, const Rewritten&) {
    const LetNode* let = As<LetNode>(expr);
    return let == nullptr || live.contains(let->var().get()) ? expr : let->body();
  }));
}

}  // namespace collage
