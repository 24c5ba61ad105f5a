// dominators.cc: numbering the post-dominator tree, so that dominance is containment of intervals.
#include "dataflow/dominators.h"

namespace collage {

DominatorTree::DominatorTree(const DataflowGraph& graph)
    : parents_(DominatorParents(graph)), children_(graph.size()), first_(graph.size()), last_(graph.size()) {
  for (size_t node = 0; node < parents_.size(); ++node) {
    if (parents_[node] >= 0) children_[parents_[node]].push_back(static_cast<int>(node));
  }
  int next = 0;
  for (size_t root = 0; root < parents_.size(); ++root) {
    if (parents_[root] >= 0) continue;
    std::vector<std::pair<int, size_t>> stack{{static_cast<int>(root), 0}};  // a node, and its next child
    first_[root] = next++;
    while (!stack.empty()) {
      const auto node = static_cast<size_t>(stack.back().first);
      if (stack.back().second == children_[node].size()) {
        last_[node] = next;
        stack.pop_back();
        continue;
      }
      const int child = children_[node][stack.back().second++];
      first_[child] = next++;
      stack.emplace_back(child, 0);
    }
  }
}

bool DominatorTree::Dominates(int dominator, int node) const {
  const auto d = static_cast<size_t>(dominator), n = static_cast<size_t>(node);
  return first_[d] <= first_[n] && first_[n] < last_[d];
}

IndexSet Downstream(const DataflowGraph& graph, int node) {
  IndexSet result(graph.size());
  std::vector<int> work{node};
  while (!work.empty()) {
    const int at = work.back();
    work.pop_back();
    for (int output : graph.node(at).outputs) {
      if (result.Contains(output)) continue;
      result.Add(output);
      work.push_back(output);
    }
  }
  return result;
}

}  // namespace collage
