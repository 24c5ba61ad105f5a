// scope_finder.cc: users before what they use, each use widening the scope.
#include "dataflow/scope_finder.h"

#include <algorithm>

#include "collage/ir/visitor.h"

namespace collage {

void ScopeFinder::Run() {
  constexpr int kNoUse = -1;
  for (DataflowGraph::Node& node : graph_.nodes_) node.scope = kNoUse;
  scopes_ = {{-1, 0}};
  graph_.nodes_.back().scope = 0;
  for (int user = static_cast<int>(graph_.size()) - 1; user >= 0; --user) AddUses(user);
}

int ScopeFinder::NewScope(int parent) {
  scopes_.push_back({parent, scopes_[static_cast<size_t>(parent)].depth + 1});
  return static_cast<int>(scopes_.size()) - 1;
}

int ScopeFinder::Common(int a, int b) const {
  while (a != b) {
    int& deeper = scopes_[static_cast<size_t>(a)].depth >= scopes_[static_cast<size_t>(b)].depth ? a : b;
    deeper = scopes_[static_cast<size_t>(deeper)].parent;
  }
  return a;
}

void ScopeFinder::AddUse(const Expr& expr, int user, int scope) {
  const auto index = graph_.indices_.find(expr.get());
  if (index == graph_.indices_.end() || index->second >= user) return;  // a recursive function's own variable
  int& of_node = graph_.nodes_[static_cast<size_t>(index->second)].scope;
  of_node = of_node < 0 ? scope : Common(of_node, scope);
}

void ScopeFinder::AddUses(int user) {
  const Expr expr = graph_.node(user).expr;
  const int around = std::max(graph_.node(user).scope, 0);  // a variable of a pattern may have no use
  switch (expr->kind()) {
    case ExprKind::kFunction: {
      const auto& function = static_cast<const FunctionNode&>(*expr);
      const bool is_whole = user + 1 == static_cast<int>(graph_.size());
      const int inner = is_whole ? around : NewScope(around);
      for (const Var& param : function.params()) AddUse(param, user, inner);
      return AddUse(function.body(), user, inner);
    }
    case ExprKind::kIf: {
      const auto& branch = static_cast<const IfNode&>(*expr);
      AddUse(branch.condition(), user, around);
      AddUse(branch.then_branch(), user, NewScope(around));
      return AddUse(branch.else_branch(), user, NewScope(around));
    }
    case ExprKind::kMatch: {
      const auto& match = static_cast<const MatchNode&>(*expr);
      AddUse(match.data(), user, around);
      for (const Clause& clause : match.clauses()) AddUse(clause.body, user, NewScope(around));
      return;
    }
    case ExprKind::kLet: {
      const auto& let = static_cast<const LetNode&>(*expr);
      AddUse(let.var(), user, around);
      [[fallthrough]];
    }
    default:
      for (const Expr& child : Children(expr)) AddUse(child, user, around);
  }
}

}  // namespace collage
