// build.h: from a GraphSpec to what the library compiles.
#pragma once

#include <oneapi/dnnl/dnnl_graph.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/onednn/engine.h"
#include "backends/onednn_graph/spec.h"

namespace collage::onednn_graph {

using onednn::Engine;
using onednn::Stream;
using onednn::UseThreads;

using LogicalTensor = dnnl::graph::logical_tensor;

/// A partition that the library made, compiled: tensors are named by their numbers in the spec.
struct CompiledPart {
  dnnl::graph::compiled_partition compiled;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::string kinds;  ///< kinds of its operations, to be read by people: "MatMul+ReLU"
};

/// A graph as kernels run it: its partitions in an order of computation.
struct Built {
  std::vector<CompiledPart> parts;
  std::unordered_map<int, LogicalTensor> tensors;  ///< all inputs and outputs of parts
  std::unordered_map<int, size_t> offsets;         ///< in the workspace: of what one part leaves for another
  std::unordered_map<int, int> viewed;             ///< view → what it is a view of
  size_t workspace_bytes = 0;

  /// Returns the tensor whose memory holds `tensor`.
  int RootOf(int tensor) const;
};

/// By number, the operations of each partition that the library would compute.
std::vector<std::vector<int>> FindPartitions(const GraphSpec& spec);

/// Throws dnnl::error, or an Error kUnavailable, for what the library does not compute.
Built Build(const GraphSpec& spec);

}  // namespace collage::onednn_graph
