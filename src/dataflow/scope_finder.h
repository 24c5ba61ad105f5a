// scope_finder.h: which nodes of a dataflow graph are used within one branch only.
#pragma once

#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// Numbers the branches, clauses and functions of a graph, and gives each node the innermost one that holds all of its
/// uses. Linear, but for how deeply branches nest.
class ScopeFinder {
 public:
  explicit ScopeFinder(DataflowGraph& graph) : graph_(graph) {}
  void Run();

 private:
  struct Scope {
    int parent;
    int depth;
  };

  int NewScope(int parent);
  int Common(int a, int b) const;
  /// `expr` is used by node `user` in `scope`.
  void AddUse(const Expr& expr, int user, int scope);
  void AddUses(int user);

  DataflowGraph& graph_;
  std::vector<Scope> scopes_;
};

}  // namespace collage
