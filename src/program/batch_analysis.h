// batch_analysis.h: operators that compute each row of a batch, whose size a run knows, of that row alone.
#pragma once

#include <functional>
#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// For each node of `graph` whether it gives rows, each of which is made of the same row of what rows it reads and of
/// tensors of known shapes, and is a tuple of such, or a call that `takes` takes with one row in place of many. Rows
/// that may be of different numbers are not read by one node.
std::vector<bool> FindBatchParallel(const DataflowGraph& graph, const std::function<bool(const CallNode& call)>& takes);

}  // namespace collage
