// needs.h: what must be computed before a node, beyond the dataflow that reaches it.
#pragma once

#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// Calls `visit` with a node's inputs, and with a let's value: it is computed before the body even where nothing uses
/// the variable.
template <class Visit>
void ForEachNeed(const DataflowGraph& graph, int index, const Visit& visit) {
  for (int input : graph.node(index).inputs) visit(input);
  if (const LetNode* let = As<LetNode>(graph.node(index).expr)) visit(graph.IndexOf(let->value()));
}

inline std::vector<int> NeedsOf(const DataflowGraph& graph, int index) {
  std::vector<int> needs;
  ForEachNeed(graph, index, [&](int need) { needs.push_back(need); });
  return needs;
}

}  // namespace collage
