// infer_order.h: in which order type inference visits, and what binds the variables that it meets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/module.h"
#include "ir/node_map.h"

namespace collage {

/// Returns nodes without type, children before parents. Typed nodes are not visited, so that inferring again after a
/// small change is cheap; a typed node's children are typed.
std::vector<Expr> UntypedInOrder(const Expr& root);

/// The functions of `module`, each behind those it calls as far as there is no cycle, so that results without
/// annotation are known when they are needed.
std::vector<std::string> CalleesFirst(const IRModule& module);

/// Binders of variables: variable → its let, or its match and clause, or none for a parameter.
struct Binders {
  /// Adds what `expr` itself binds.
  void Add(const Expr& expr);

  struct Param {};
  NodeMap<const LetNode*> lets;
  NodeMap<std::pair<const MatchNode*, const Clause*>> clauses;
  NodeMap<Param> params;

 private:
  void AddPattern(const Pattern& pattern, const MatchNode* match, const Clause* clause);
};

}  // namespace collage
