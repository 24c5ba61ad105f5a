// node_order.h: nodes of a graph in an order in which they can be converted, and their names.
#pragma once

#include <string>
#include <vector>

#include "onnx/onnx-ml.pb.h"

namespace collage {

/// `nodes` such that each comes behind those that compute what it reads, in its nested graphs too; in their own order
/// where that is one. ONNX wants them so, but runtimes take any order. Throws kInput, at `where`, when nodes read each
/// other's outputs in a cycle. O(n log n) in the nodes and edges.
std::vector<const onnx::NodeProto*> NodesInOrder(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                                 const std::string& where);

/// The name of a node in messages: its own, else its first output's, else its operator's.
const std::string& NodeName(const onnx::NodeProto& node);

}  // namespace collage
