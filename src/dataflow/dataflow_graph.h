// dataflow_graph.h: the indexed form of a function's dataflow (RFC 0.81, "DataflowGraph").
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"

namespace collage {

/// Every sub-expression of a function under its post-dfs index: parameters first, then depth first (a call's operator,
/// then its arguments), shared ones once, the function last. If i < j, node j cannot influence node i.
class DataflowGraph {
 public:
  struct Node {
    Expr expr;
    std::vector<int> inputs;   ///< sub-expressions in order, with repetitions
    std::vector<int> outputs;  ///< users, each once
    bool is_external = false;  ///< the function's result
  };

  explicit DataflowGraph(Function function);

  const Function& function() const { return function_; }
  size_t size() const { return nodes_.size(); }
  const Node& node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  int IndexOf(const Expr& expr) const { return indices_.at(expr.get()); }

  /// The operator that node `index` calls; null for everything else.
  const OpDef* OpAt(int index) const;
  /// Fusion kind of one node: an operator's, injective for tuples and projections of tensors, else opaque.
  OpPatternKind KindAt(int index) const;
  /// Operators, functions and constants are pulled into partitions that use them and never become parameters.
  bool CanInline(int index) const;
  /// "add", "%x", "const", "tuple", "proj", "fn" …
  std::string LabelAt(int index) const;

 private:
  Function function_;
  std::vector<Node> nodes_;
  std::unordered_map<const ExprNode*, int> indices_;
};

}  // namespace collage
