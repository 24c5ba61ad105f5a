// needs.h: what must be computed before a node, beyond the dataflow that reaches it.
#pragma once

#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// A node's inputs, and a let's value: it is computed before the body even where nothing uses the variable.
inline std::vector<int> NeedsOf(const DataflowGraph& graph, int index) {
  std::vector<int> needs = graph.node(index).inputs;
  if (const LetNode* let = As<LetNode>(graph.node(index).expr)) needs.push_back(graph.IndexOf(let->value()));
  return needs;
}

}  // namespace collage
