// layout_analysis.h: which values may be channels-last where they cross a partition boundary.
#pragma once

#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// For every node, whether its value may be channels-last: tensors of rank 3 to 5 that convolutions, pools or resizes
/// read or make, and those connected to them by operators that keep a layout. The function's parameters and results are
/// plain.
std::vector<bool> ChannelsLastEligible(const DataflowGraph& graph);

/// Whether the operator at `index` makes values that may be channels-last, or keeps them so.
bool MayMakeChannelsLast(const DataflowGraph& graph, int index);

}  // namespace collage
