// model_explorer.h: files for Google's Model Explorer: graphs of its own, and data that it lays over the nodes of a
// graph that it read itself.
#pragma once

#include <string>

#include "viewers/onnx_outline.h"
#include "viewers/viewed_model.h"

namespace collage {

/// A collection of graphs as JSON, `{"label", "graphs"}`: one of partitions with the tensors between them, kernels of
/// programs as groups; and, with the user's `model`, one of its nodes in groups that are partitions. `model` may be
/// null.
std::string ModelExplorerGraphs(const ViewedModel& viewed, const OnnxOutline* model);

/// Facts of each node for `graph`, the model's name of its main graph, which the viewer shows as a column each.
struct NodeDataFiles {
  std::string microseconds;  ///< JSON: each node's share of its partition's time, coloured by it
  std::string share;         ///< … in percent of all
  std::string toolchain;     ///< …: the toolchain's name, coloured by toolchain
  std::string partition;     ///< …: numbers of its partitions
  size_t nodes = 0;          ///< nodes of the model that have data
};
NodeDataFiles ModelExplorerNodeData(const ViewedModel& viewed, const OnnxOutline& model);

}  // namespace collage
