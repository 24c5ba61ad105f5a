// brute_force.h: paths, convexity and kinds by their definitions.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "dataflow/dataflow_graph.h"
#include "partition/sub_graph.h"

namespace collage::brute_force {

using Set = std::set<int>;
inline Set ToSet(const std::vector<int>& list) { return {list.begin(), list.end()}; }

using PathTable = std::vector<std::vector<char>>;

/// paths[i][j]: a path of at least one edge leads from i to j.
inline PathTable Paths(const DataflowGraph& graph) {
  const size_t size = graph.size();
  PathTable paths(size, std::vector<char>(size));
  for (size_t to = 0; to < size; ++to) {
    for (int input : graph.node(static_cast<int>(to)).inputs) {
      const auto from = static_cast<size_t>(input);
      paths[from][to] = 1;
      for (size_t i = 0; i < size; ++i) paths[i][to] |= paths[i][from];
    }
  }
  return paths;
}

/// No path between two nodes inside goes through one outside.
inline bool IsConvex(const PathTable& paths, const Set& inside) {
  for (size_t k = 0; k < paths.size(); ++k) {
    if (inside.contains(static_cast<int>(k))) continue;
    const auto reaches_k = [&](int from) { return paths[static_cast<size_t>(from)][k] != 0; };
    const auto is_reached = [&](int to) { return paths[k][static_cast<size_t>(to)] != 0; };
    if (std::any_of(inside.begin(), inside.end(), reaches_k) && std::any_of(inside.begin(), inside.end(), is_reached)) {
      return false;
    }
  }
  return true;
}

/// E in place of B where operators broadcast nothing but constants: all else that they read has their shape.
inline OpPatternKind KindByShapes(const DataflowGraph& graph, const SubGraph& sub_graph) {
  if (sub_graph.kind() != OpPatternKind::kBroadcast) return sub_graph.kind();
  for (int index : sub_graph.members()) {
    const Expr& expr = graph.node(index).expr;
    const CallNode* call = As<CallNode>(expr);
    if (graph.KindAt(index) != OpPatternKind::kBroadcast || call == nullptr) continue;
    for (const Expr& arg : call->args()) {
      if (As<ConstantNode>(arg) != nullptr) continue;
      if (AsTensorType(arg->checked_type())->shape() != AsTensorType(expr->checked_type())->shape()) {
        return OpPatternKind::kBroadcast;
      }
    }
  }
  return OpPatternKind::kElemWise;
}

}  // namespace collage::brute_force
