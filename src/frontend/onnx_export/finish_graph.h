// finish_graph.h: what is left to do to a graph of ONNX when all its nodes are there.
#pragma once

#include <functional>
#include <string>

#include "onnx/onnx-ml.pb.h"

namespace collage {

/// Calls `visit` with everything that graphs nested in `node` read, their own values included.
void ForEachNestedName(const onnx::NodeProto& node, const std::function<void(const std::string&)>& visit);

/// Reductions name their axes by an attribute, as they do before opset 18; nested graphs included.
void WriteAxesAsAttributes(onnx::GraphProto& graph);

/// Leaves out nodes and initializers that nothing reads.
void DropUnread(onnx::GraphProto& graph);

}  // namespace collage
