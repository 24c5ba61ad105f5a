// scope_finder.h: where the nodes of a dataflow graph are used, and where they could be computed.
#pragma once

#include <unordered_map>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// Fills in the scopes of a graph and its nodes. Near-linear.
class ScopeFinder {
 public:
  explicit ScopeFinder(DataflowGraph& graph) : graph_(graph) {}
  void Run();

 private:
  /// `expr` is used by node `user` in `scope`.
  void AddUse(const Expr& expr, int user, int scope);
  void AddUses(int user);
  void FindBinding(int index);

  DataflowGraph& graph_;
  std::unordered_map<const ExprNode*, int> bound_in_;  ///< variable → the scope that it is bound in
};

}  // namespace collage
