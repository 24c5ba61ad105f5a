// interpreter_scope.cc: parents are visited before children, so that all uses of a node are known when its turn comes.
#include "ir/eval/interpreter_scope.h"

#include <algorithm>

#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage {
namespace {

/// Means the same everywhere and costs nothing to evaluate again.
bool IsStatic(const Expr& expr) {
  switch (expr->kind()) {
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
    case ExprKind::kConstructor: return true;
    default: return false;
  }
}

}  // namespace

ScopeAnalysis::ScopeAnalysis(const Function& root) {
  std::vector<Expr> order;
  PostOrder(root, [&](const Expr& expr) { order.push_back(expr); });
  std::reverse(order.begin(), order.end());
  const auto inside_of = [&](const Expr& expr) {
    return expr->kind() == ExprKind::kFunction ? *index_.Find(expr.get()) : OwnerOf(expr);
  };
  uses_.Emplace(root.get(), {-1, 0});
  for (const Expr& expr : order) {
    AddBinders(expr, OwnerOf(expr));
    const int inside = inside_of(expr);
    for (size_t i = 0; const Expr* child = ChildAt(*expr, i); ++i) AddUse(*child, inside);
  }
  // A second pass, since only now is it known where everything belongs.
  for (const Expr& expr : order) {
    const int inside = inside_of(expr);
    for (size_t i = 0; const Expr* child = ChildAt(*expr, i); ++i) {
      if (!IsStatic(*child)) Capture(*child, inside);
    }
  }
}

void ScopeAnalysis::AddBinders(const Expr& expr, int scope) {
  if (const FunctionNode* function = As<FunctionNode>(expr)) {
    const int index = static_cast<int>(scopes_.size());
    scopes_.push_back({scope, scope < 0 ? 0 : scopes_[scope].depth + 1, function, {}, {}});
    index_[function] = index;
    for (const Var& param : function->params()) Bind(param, index);
  } else if (const LetNode* let = As<LetNode>(expr)) {
    Bind(let->var(), scope);
    if (const FunctionNode* value = As<FunctionNode>(let->value())) bound_to_.emplace(value, let->var().get());
  } else if (const MatchNode* match = As<MatchNode>(expr)) {
    for (const Clause& clause : match->clauses()) AddPattern(clause.pattern, scope);
  }
}

void ScopeAnalysis::Bind(const Var& var, int scope) { uses_.Emplace(var.get(), {scope, 0}).first->owner = scope; }

void ScopeAnalysis::AddPattern(const Pattern& pattern, int scope) {
  if (pattern.var) Bind(pattern.var, scope);
  for (const Pattern& sub : pattern.sub_patterns) AddPattern(sub, scope);
}

void ScopeAnalysis::AddUse(const Expr& child, int scope) {
  Use& use = *uses_.Emplace(child.get(), {scope, 0}).first;
  ++use.count;
  // Binders stand before uses, and their word counts.
  if (child->kind() != ExprKind::kVar) use.owner = CommonScope(use.owner, scope);
}

int ScopeAnalysis::CommonScope(int a, int b) const {
  const auto scope = [&](int index) -> const Scope& { return scopes_[index]; };
  while (a != b) {
    if (scope(a).depth < scope(b).depth) std::swap(a, b);
    a = scope(a).parent;
  }
  return a;
}

void ScopeAnalysis::Capture(const Expr& child, int scope) {
  const int owner = OwnerOf(child);
  const int owner_depth = owner < 0 ? -1 : scopes_[owner].depth;
  while (scope != owner && scope >= 0) {
    Scope& inside = scopes_[scope];
    // A variable of an unrelated function: nobody can capture it, and using it says so.
    if (inside.depth <= owner_depth) return;
    auto self = bound_to_.find(inside.function);
    if (self != bound_to_.end() && self->second == child.get()) {
      recursive_.insert(inside.function);
      return;
    }
    if (inside.captured.insert(child.get()).second) inside.captures.push_back(child);
    scope = inside.parent;
  }
}

const std::vector<Expr>& ScopeAnalysis::Captures(const FunctionNode& function) const {
  return scopes_[*index_.Find(&function)].captures;
}

const VarNode* ScopeAnalysis::SelfOf(const FunctionNode& function) const {
  return recursive_.contains(&function) ? bound_to_.at(&function) : nullptr;
}

bool ScopeAnalysis::IsShared(const ExprNode& node) const {
  const Use* use = uses_.Find(&node);
  return use != nullptr && use->count > 1;
}

}  // namespace collage
