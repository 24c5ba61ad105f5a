// sub_graph.h: a set of nodes of a dataflow graph that may become a partition (RFC 0.81, "SubGraph").
#pragma once

#include <string>
#include <vector>

#include "collage/support/result.h"
#include "dataflow/dataflow_graph.h"
#include "dataflow/index_set.h"

namespace collage {

/// Which sub-graphs are valid; 0 means no limit.
struct SubGraphConfig {
  int max_exits = 0;
  int max_depth = 0;
  bool allow_taps = false;  ///< whether an exit may feed other nodes inside as well
};

/// Nodes that are wrapped by a function with attributes when the sub-graph becomes one, such as a Composite. Nested
/// ones are subsets of it; neighbours are disjoint.
struct NestedSubGraph {
  std::vector<int> inside;  ///< ascending
  Attrs attrs;
  std::vector<NestedSubGraph> nested;
};

/// Inside nodes and what follows from them. Nodes that can be inlined (operators, scalars) count neither as inputs nor
/// need they be inside.
///
///        x      input: outside, feeds inside
///        |
///      conv     entry: inside, fed from outside
///        |
///      relu     exit: inside, feeds outside
///        |
///       ...     output: outside, fed from inside
///
/// An exit that feeds inside nodes as well is a tap. All lists of nodes are ascending.
class SubGraph {
 public:
  SubGraph(const DataflowGraph& graph, std::vector<int> inside);

  const IndexSet& inside() const { return inside_; }
  const std::vector<int>& members() const { return members_; }
  const std::vector<int>& entry() const { return entry_; }
  const std::vector<int>& exit() const { return exit_; }
  const std::vector<int>& input() const { return input_; }
  const std::vector<int>& output() const { return output_; }
  int first() const { return members_.front(); }
  int last() const { return members_.back(); }
  /// The largest kind inside.
  OpPatternKind kind() const { return kind_; }
  /// Nodes on the longest path from an entry to an exit; 0 when there is no entry.
  int depth() const { return depth_; }
  /// Labels of all nodes, or of operator calls only, joined by '+'.
  std::string Label(const DataflowGraph& graph) const;
  std::string OperatorLabel(const DataflowGraph& graph) const;

  std::vector<NestedSubGraph> nested;

  /// Returns the same nodes, to be wrapped whole by a function with `attrs`; nested functions stay inside it.
  SubGraph Wrapped(Attrs attrs) const;

  /// Yes, or where a path leaves the sub-graph and comes back. Linear in last() - first().
  Result<void> CheckConvex(const DataflowGraph& graph) const;

  /// Yes, or why no call can compute all of it: nodes of several branches, clauses or functions, or a path that leaves
  /// and comes back.
  Result<void> CheckRunnable(const DataflowGraph& graph) const;

  /// Yes, or which rule it breaks: limits as configured, and all that CheckRunnable says. Linear in last() - first().
  Result<void> CheckValid(const DataflowGraph& graph, const SubGraphConfig& config) const;

 private:
  IndexSet inside_;
  std::vector<int> members_;
  std::vector<int> entry_, exit_, input_, output_;
  OpPatternKind kind_ = OpPatternKind::kElemWise;
  int depth_ = 0;
};

/// Adds `more` to `nested`: neighbours with equal attributes become one, unless they are Composites.
void AddNested(std::vector<NestedSubGraph>& nested, const std::vector<NestedSubGraph>& more);

/// `nested` as a partition holds it, which is made Primitive itself when it is chosen (rewrite.h): what Primitive ones
/// hold stands in their place.
std::vector<NestedSubGraph> WithoutPrimitives(std::vector<NestedSubGraph> nested);

/// `members` and the Composites of `nested` as numbers: equal for the same members, wrapped alike.
std::vector<int> KeyOf(std::vector<int> members, const std::vector<NestedSubGraph>& nested);
/// Tells sub-graphs of one graph apart by their members and how these are wrapped.
inline std::vector<int> KeyOf(const SubGraph& sub_graph) { return KeyOf(sub_graph.members(), sub_graph.nested); }

/// All nodes of `a`, `b` and `between`. Nested sub-graphs are kept; of those that are no Composite, neighbours with
/// equal attributes become one. `a` and `b` may share constants, nothing else.
SubGraph DisjointUnion(const DataflowGraph& graph, const SubGraph& a, const SubGraph& b, std::vector<int> between = {});

/// Whether a node that computes something is inside both.
bool Overlap(const DataflowGraph& graph, const SubGraph& a, const SubGraph& b);

}  // namespace collage
