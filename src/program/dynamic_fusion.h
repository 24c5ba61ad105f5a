// dynamic_fusion.h: groups operators on dynamic shapes, one kernel a group.
#pragma once

#include <functional>
#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// Returns disjoint, ascending sets of nodes: calls that `takes` accepts, with a dimension `?` in an argument or the
/// result, and tuples between them. Nodes that are `is_elsewhere` are left out. Element-wise and injective operators
/// join their only reader; operators that keep a shape, whatever its sizes, join the product, reduction or
/// normalisation that they read. Other nodes read one value of each set, or the fields of one.
std::vector<std::vector<int>> FindDynamicFusions(const DataflowGraph& graph,
                                                 const std::function<bool(const CallNode& call)>& takes,
                                                 const std::vector<bool>& is_elsewhere);

}  // namespace collage
