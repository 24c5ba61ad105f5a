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

/// Nodes that are wrapped by a function with attributes when the sub-graph becomes one, such as a Composite.
struct NestedSubGraph {
  std::vector<int> inside;
  Attrs attrs;
};

/// Inside nodes and what follows from them. Nodes that can be inlined (operators, constants) count neither as inputs nor
/// need they be inside.
///
///        x      input: outside, feeds inside
///        |
///      conv     entry: inside, fed from outside
///        |
///      relu     exit: inside, feeds outside
///        |
///       ...     output: outside, fed from inside
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
  OpPatternKind kind() const { return kind_; }
  /// Nodes on the longest path inside.
  int depth() const { return depth_; }
  /// Labels joined by '+'.
  std::string Label(const DataflowGraph& graph) const;

  std::vector<NestedSubGraph> nested;

  /// Yes, or which rule it breaks. No path may leave and come back; limits as configured.
  Result<void> CheckValid(const DataflowGraph& graph, const SubGraphConfig& config) const;

 private:
  IndexSet inside_;
  std::vector<int> members_;
  std::vector<int> entry_, exit_, input_, output_;
  OpPatternKind kind_ = OpPatternKind::kElemWise;
  int depth_ = 0;
};

/// A sub-graph as a function of its own.
struct ExtractedFunction {
  Function function;             ///< typed; constants inlined; parameters are tensors
  std::vector<int> input_nodes;  ///< the node that each parameter stands for
  std::vector<int> output_nodes; ///< the exits, in order; the result is a tuple when there are several
};

/// Extracts without rewriting the graph. Inputs of tuple type are not supported: throws kUnsupported.
ExtractedFunction Extract(const DataflowGraph& graph, const SubGraph& sub_graph);

}  // namespace collage
