// batch_analysis.h: finds operators that compute each row of a dynamic batch from that row alone.
#pragma once

#include <functional>
#include <vector>

#include "dataflow/dataflow_graph.h"

namespace collage {

/// Returns for each node of `graph` that computes row i of a batch from row i of the batches that it reads
/// (OpDef::keeps_rows) and from tensors of static shapes, the node whose rows they are; -1 for others. `takes` must
/// accept the call with batches of one row. A tuple of such nodes counts, too. A node does not count if it reads
/// batches that may differ in size.
std::vector<int> FindBatchParallel(const DataflowGraph& graph, const std::function<bool(const CallNode& call)>& takes);

}  // namespace collage
