// groups.h: which nodes of a model become one, and the model of a group of nodes.
#pragma once

#include <vector>

#include "onnx/onnx-ml.pb.h"

namespace collage::onnxruntime {

/// Nodes of a graph, by place, in order.
using NodeGroup = std::vector<int>;

/// Groups of the nodes that are `taken`, as few as this way finds: no path from a node to another of its group goes
/// through a node outside. `graph` has its nodes in an order in which they can be computed. O(n log n).
std::vector<NodeGroup> GroupNodes(const onnx::GraphProto& graph, const std::vector<bool>& taken);

/// A model of the nodes of `group` alone. Its inputs are the values that they read and that others make, its outputs
/// those that others read or that `model` has for outputs; types are those that `model` states.
onnx::ModelProto ModelOfGroup(const onnx::ModelProto& model, const NodeGroup& group);

}  // namespace collage::onnxruntime
