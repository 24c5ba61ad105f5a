// extract.h: a sub-graph as a function of its own, to be measured or compiled, without touching the graph.
#pragma once

#include <vector>

#include "partition/sub_graph.h"

namespace collage {

/// A tensor that crosses a boundary: the value of a node, or one field of its tuple.
struct BoundaryValue {
  int node;
  int field = -1;  ///< -1: the value is a tensor
  auto operator<=>(const BoundaryValue&) const = default;
};

/// The tensors that cross a sub-graph's boundary, in the order of the parameters and of the flattened results.
struct Boundary {
  std::vector<BoundaryValue> inputs;
  std::vector<BoundaryValue> outputs;
};

/// Parameters are numbered in the order of first use, the last result's first (as RFC 0.81's extraction works
/// backwards). Constants are no inputs. Tuples do not cross a boundary: one that is built outside is built again inside
/// from its fields, one that an operator returns comes in field by field.
struct ExtractedFunction {
  Function function;  ///< typed; its result is a tuple when there are several exits
  Boundary boundary;
};

/// Nested sub-graphs become calls of functions with their attributes. Throws kUnsupported for inputs that are neither
/// tensors nor tuples of tensors.
ExtractedFunction Extract(const DataflowGraph& graph, const SubGraph& sub_graph);

/// The boundary alone.
Boundary BoundaryOf(const DataflowGraph& graph, const SubGraph& sub_graph);

}  // namespace collage
