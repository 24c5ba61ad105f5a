// fusion_groups.h: what FuseOps makes one function of, for those that need no function.
#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// The groups of at most `max_calls` operator calls that FuseOps finds, those that call none left out; members and
/// groups ascending. Every node that calls an operator is in one.
std::vector<std::vector<int>> FusionGroups(const DataflowGraph& graph, int64_t max_calls);

}  // namespace collage
