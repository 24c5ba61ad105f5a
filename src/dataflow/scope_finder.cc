// scope_finder.cc: users before what they use, each use widening the scope; then nodes behind what they use, each
// variable narrowing it.
#include "dataflow/scope_finder.h"

#include <algorithm>

#include "collage/ir/visitor.h"

namespace collage {
namespace {

constexpr int kNoUse = -1;

void BindPatternVars(const Pattern& root, int scope, std::unordered_map<const ExprNode*, int>& bound_in) {
  std::vector<const Pattern*> work{&root};
  while (!work.empty()) {
    const Pattern& pattern = *work.back();
    work.pop_back();
    if (pattern.var) bound_in[pattern.var.get()] = scope;
    for (const Pattern& inner : pattern.sub_patterns) work.push_back(&inner);
  }
}

}  // namespace

void ScopeFinder::Run() {
  for (DataflowGraph::Node& node : graph_.nodes_) node.place = kNoUse;
  graph_.nodes_.back().place = 0;
  const int size = static_cast<int>(graph_.size());
  for (int user = size - 1; user >= 0; --user) AddUses(user);
  for (int index = 0; index < size; ++index) FindBinding(index);
}

void ScopeFinder::AddUse(const Expr& expr, int user, int scope) {
  const auto index = graph_.indices_.find(expr.get());
  if (index == graph_.indices_.end() || index->second >= user) return;  // a recursive function's own variable
  int& place = graph_.nodes_[index->second].place;
  place = place == kNoUse ? scope : graph_.scopes_.Common(place, scope);
}

void ScopeFinder::AddUses(int user) {
  DataflowGraph::Node& node = graph_.nodes_[user];
  node.place = std::max(node.place, 0);  // a variable of a pattern may have no use
  node.scope = graph_.scopes_.BranchOf(node.place);
  const int around = node.place;
  const Expr expr = node.expr;
  switch (expr->kind()) {
    case ExprKind::kFunction: {
      const auto& function = static_cast<const FunctionNode&>(*expr);
      const bool is_whole = user + 1 == static_cast<int>(graph_.size());
      const int inner = is_whole ? around : graph_.scopes_.Add(around, /*is_branch=*/true);
      for (const Var& param : function.params()) {
        bound_in_[param.get()] = inner;
        AddUse(param, user, inner);
      }
      return AddUse(function.body(), user, inner);
    }
    case ExprKind::kIf: {
      const auto& branch = static_cast<const IfNode&>(*expr);
      AddUse(branch.condition(), user, around);
      AddUse(branch.then_branch(), user, graph_.scopes_.Add(around, /*is_branch=*/true));
      return AddUse(branch.else_branch(), user, graph_.scopes_.Add(around, /*is_branch=*/true));
    }
    case ExprKind::kMatch: {
      const auto& match = static_cast<const MatchNode&>(*expr);
      AddUse(match.data(), user, around);
      for (const Clause& clause : match.clauses()) {
        const int inner = graph_.scopes_.Add(around, /*is_branch=*/true);
        BindPatternVars(clause.pattern, inner, bound_in_);
        AddUse(clause.body, user, inner);
      }
      return;
    }
    case ExprKind::kLet: {
      const auto& let = static_cast<const LetNode&>(*expr);
      const int inner = graph_.scopes_.Add(around, /*is_branch=*/false);
      bound_in_[let.var().get()] = inner;
      AddUse(let.var(), user, inner);
      AddUse(let.value(), user, around);
      return AddUse(let.body(), user, inner);
    }
    default:
      for (const Expr& child : Children(expr)) AddUse(child, user, around);
  }
}

void ScopeFinder::FindBinding(int index) {
  DataflowGraph::Node& node = graph_.nodes_[index];
  if (node.expr->kind() == ExprKind::kVar) {
    const auto bound = bound_in_.find(node.expr.get());
    node.bound_in = bound == bound_in_.end() ? 0 : bound->second;
    return;
  }
  node.bound_in = 0;
  for (const Expr& child : Children(node.expr)) {
    const int at = graph_.indices_.at(child.get());
    if (at >= index) continue;
    int bound_in = graph_.node(at).bound_in;
    // By a variable that this node binds itself: how much further out it could go is not looked into.
    if (!graph_.scopes_.IsWithin(node.place, bound_in)) bound_in = node.place;
    if (graph_.scopes_.DepthOf(bound_in) > graph_.scopes_.DepthOf(node.bound_in)) node.bound_in = bound_in;
  }
}

}  // namespace collage
