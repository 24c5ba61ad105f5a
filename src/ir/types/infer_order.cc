// infer_order.cc: nodes and functions in the order in which their types are inferred.
#include "ir/types/infer_order.h"

#include <map>
#include <unordered_set>

#include "collage/ir/visitor.h"

namespace collage {

std::vector<Expr> UntypedInOrder(const Expr& root) {
  const auto visits = [](const Expr& child) { return !child->checked_type() && child->kind() != ExprKind::kOp; };
  std::vector<Expr> order;
  PostOrder(root, {.visits = visits, .enters = nullptr}, [&](const Expr& expr) { order.push_back(expr); });
  return order;
}

std::vector<std::string> CalleesFirst(const IRModule& module) {
  std::map<std::string, std::vector<std::string>> callees;
  for (const auto& [name, function] : module.functions()) {
    std::vector<std::string>& list = callees[name];
    if (function->checked_type()) continue;
    PostOrder(function, [&](const Expr& expr) {
      const GlobalVarNode* global = As<GlobalVarNode>(expr);
      if (global != nullptr && module.Has(global->name())) list.push_back(global->name());
    });
  }
  std::vector<std::string> order;
  std::unordered_set<std::string> seen;
  std::vector<std::pair<std::string, size_t>> stack;  // function, next callee
  for (const auto& [root, list] : callees) {
    if (seen.insert(root).second) stack.emplace_back(root, 0);
    while (!stack.empty()) {
      const std::vector<std::string>& called = callees[stack.back().first];
      if (stack.back().second == called.size()) {
        order.push_back(stack.back().first);
        stack.pop_back();
        continue;
      }
      const std::string& next = called[stack.back().second++];
      if (seen.insert(next).second) stack.emplace_back(next, 0);
    }
  }
  return order;
}

void Binders::Add(const Expr& expr) {
  if (const LetNode* let = As<LetNode>(expr)) {
    lets[let->var().get()] = let;
  } else if (const MatchNode* match = As<MatchNode>(expr)) {
    for (const Clause& clause : match->clauses()) AddPattern(clause.pattern, match, &clause);
  } else if (const FunctionNode* function = As<FunctionNode>(expr)) {
    for (const Var& param : function->params()) params.Emplace(param.get(), {});
  }
}

void Binders::AddPattern(const Pattern& pattern, const MatchNode* match, const Clause* clause) {
  if (pattern.var) clauses[pattern.var.get()] = {match, clause};
  for (const Pattern& sub : pattern.sub_patterns) AddPattern(sub, match, clause);
}

}  // namespace collage
