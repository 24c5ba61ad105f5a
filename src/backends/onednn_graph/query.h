// query.h: what the description asks of the module that holds the library.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/onednn_graph/spec.h"
#include "collage/support/result.h"

namespace collage::onednn_graph {

/// How the library would compute a graph.
struct Implementation {
  size_t workspace_bytes = 0;
  std::string partitions;  ///< for reading: the kinds of operations of each, a line each
};

/// Signature of `collage_onednn_graph_query`: compiles the graph for so many threads; declines what the library does.
using QueryFn = Result<Implementation>(const GraphSpec& spec, int num_threads);

/// Signature of `collage_onednn_graph_partitions`: which operations the library would compute together, by number, the
/// fusing policy being its default. Unsupported operations are in none.
using PartitionsFn = std::vector<std::vector<int>>(const GraphSpec& spec);

}  // namespace collage::onednn_graph
