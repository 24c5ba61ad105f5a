// dataflow_graph.h: the indexed form of a function's dataflow (RFC 0.81, "DataflowGraph").
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "dataflow/scope_tree.h"

namespace collage {

/// How partitions see what crosses their boundary.
enum class Boundaries : uint8_t {
  /// As runtimes want it: constants are copied into each partition that reads them, so that shared ones bind nothing
  /// together; tuples cross field by field.
  kTensors,
  /// As RFC 0.81 defines sub-graphs: constants (but scalars) and tuples are nodes as any other.
  kExact,
};

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
    /// The innermost branch, clause or function that holds all uses: the same number for nodes of the same one. Nodes
    /// that are written once and used in two branches are of what is around these, whatever their `basic_block`.
    int scope = 0;
    /// As `scope`, the bodies of lets being scopes too: a number of `scopes()`.
    int place = 0;
    /// The innermost of the scopes that bind what the node depends on: it can be computed anywhere within.
    int bound_in = 0;
    bool is_in_primitive = false;  ///< within a function that is a partition already
    bool is_let_bound = false;     ///< a let's variable; its only input is the let's value, unless that is recursive
  };

  explicit DataflowGraph(Function function, Boundaries boundaries = Boundaries::kTensors);

  const Function& function() const { return function_; }
  Boundaries boundaries() const { return boundaries_; }
  size_t size() const { return nodes_.size(); }
  const ScopeTree& scopes() const { return scopes_; }
  const Node& node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  /// Whether both nodes can be computed wherever one of them is: the same basic block, and uses in the same branch.
  bool AreTogether(int a, int b) const {
    return node(a).basic_block == node(b).basic_block && node(a).scope == node(b).scope;
  }
  int IndexOf(const Expr& expr) const { return indices_.at(expr.get()); }

  /// The operator that node `index` calls; null for everything else.
  const OpDef* OpAt(int index) const;
  /// Fusion kind of one node: an operator's, injective for tuples and projections of tensors, else opaque. Operators
  /// whose results have dynamic shapes are opaque.
  OpPatternKind KindAt(int index) const;
  bool IsConstant(int index) const { return node(index).expr->kind() == ExprKind::kConstant; }
  /// Operators, functions and scalar constants: pulled into sub-graphs that use them, never an input of one.
  bool CanInline(int index) const;
  /// A constant of which each partition has its own copy: it counts neither as an exit nor as shared work.
  bool IsCopied(int index) const { return boundaries_ == Boundaries::kTensors && IsConstant(index); }
  /// Whether a node needs no parameter when a sub-graph becomes a function: it can be inlined, or is a constant that is
  /// copied.
  bool IsInlinedInPartitions(int index) const { return IsCopied(index) || CanInline(index); }
  /// "add" (a call), "`add" (the operator), "%x", "const", "scalar", "tuple", "proj", "fn", "let", "if", "match",
  /// "ref", "@g"; "call_prim", "call_fun", "call_any" for calls of partitions, functions, anything else.
  std::string LabelAt(int index) const;

 private:
  friend class DataflowIndexer;
  friend class ScopeFinder;

  Function function_;
  Boundaries boundaries_;
  std::vector<Node> nodes_;
  ScopeTree scopes_;
  std::unordered_map<const ExprNode*, int> indices_;
};

/// For each node its immediate post-dominator: the first node through which all of its value's uses pass on their way
/// to the function's result. -1 for the function, and for what does not reach it.
std::vector<int> DominatorParents(const DataflowGraph& graph);

}  // namespace collage
