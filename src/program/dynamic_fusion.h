// dynamic_fusion.h: operators on tensors of unknown shapes that one kernel can compute.
#pragma once

#include <functional>
#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// Disjoint sets of nodes that are not `is_elsewhere`, ascending: calls that `takes` takes, with a dimension `?` in
/// what they read or give, and the tuples between them. Element-wise and injective operators go into whoever alone
/// reads them; behind a product, a reduction or a normalisation go those that surely keep its shape. Each set has one
/// value that others read, or the fields of one.
std::vector<std::vector<int>> FindDynamicFusions(const DataflowGraph& graph,
                                                 const std::function<bool(const CallNode& call)>& takes,
                                                 const std::vector<bool>& is_elsewhere);

}  // namespace collage
