// dataflow_graph.h: the indexed form of a function's dataflow (RFC 0.81, "DataflowGraph").
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"

namespace collage {

/// Every sub-expression of a function under its post-dfs index: parameters first, then depth first (a call's operator,
/// then its arguments; a let's value, variable, body; a match's data, then each clause's variables and body), shared
/// ones once, inner functions' bodies too, the function itself last. If i < j, node j cannot influence node i.
///
/// Edges follow the data: a let's value feeds its variable, the body feeds the let. The call of a recursive function
/// from within itself has no edge from the function's variable, so that the graph has no circles.
class DataflowGraph {
 public:
  struct Node {
    Expr expr;
    std::vector<int> inputs;   ///< sub-expressions in order; `add(x, x)` has x twice
    std::vector<int> outputs;  ///< users in ascending order; x has that add twice
    bool is_external = false;  ///< the function itself
    /// The innermost function, `if` or `match` in whose body or branch the node is computed; -1 for the outermost
    /// function's own nodes.
    int basic_block = -1;
    bool is_in_primitive = false;  ///< within a function that is a partition already
  };

  explicit DataflowGraph(Function function);

  const Function& function() const { return function_; }
  size_t size() const { return nodes_.size(); }
  const Node& node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  int IndexOf(const Expr& expr) const { return indices_.at(expr.get()); }

  /// The operator that node `index` calls; null for everything else.
  const OpDef* OpAt(int index) const;
  /// Fusion kind of one node: an operator's, injective for tuples and projections of tensors, else opaque. Operators
  /// with results of unknown shape are opaque.
  OpPatternKind KindAt(int index) const;
  bool IsConstant(int index) const { return node(index).expr->kind() == ExprKind::kConstant; }
  /// Operators, functions and scalar constants: pulled into sub-graphs that use them, never an input of one.
  bool CanInline(int index) const;
  /// What needs no parameter when a sub-graph becomes a function: what can be inlined, and all constants.
  bool IsInlinedInPartitions(int index) const { return IsConstant(index) || CanInline(index); }
  /// "add", "%x", "const", "tuple", "proj", "fn" …
  std::string LabelAt(int index) const;

 private:
  friend class DataflowIndexer;

  Function function_;
  std::vector<Node> nodes_;
  std::unordered_map<const ExprNode*, int> indices_;
};

/// For each node its immediate post-dominator: the first node through which all of its value's uses pass on their way
/// to the function's result. -1 for the function, and for what does not reach it.
std::vector<int> DominatorParents(const DataflowGraph& graph);

}  // namespace collage
