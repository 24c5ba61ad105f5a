// dominators.h: what follows from immediate post-dominators (DominatorParents): the tree's other direction, dominance
// of any two nodes, and what depends on a node.
#pragma once

#include <vector>

#include "dataflow/dataflow_graph.h"
#include "dataflow/index_set.h"

namespace collage {

/// The post-dominator tree of a graph.
class DominatorTree {
 public:
  explicit DominatorTree(const DataflowGraph& graph);

  /// -1 for the function, and for what does not reach it.
  int Parent(int node) const { return parents_[static_cast<size_t>(node)]; }
  /// The nodes whose parent is `node` (inverse dominators), ascending.
  const std::vector<int>& Children(int node) const { return children_[static_cast<size_t>(node)]; }
  /// Whether all of `node`'s uses pass through `dominator` on their way to the result; a node dominates itself. In the
  /// time that it takes to compare two numbers.
  bool Dominates(int dominator, int node) const;

 private:
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;
  std::vector<int> first_, last_;  ///< the stretch of a walk of the tree that holds a node's descendants
};

/// Nodes that depend on `node`, itself not among them. Linear in what comes behind it.
IndexSet Downstream(const DataflowGraph& graph, int node);

}  // namespace collage
