// onnx_outline.cc: the user's own ONNX model, as far as viewers need it.
#include "viewers/onnx_outline.h"

#include "collage/support/error.h"
#include "frontend/onnx/model_file.h"
#include "frontend/onnx/node_order.h"
#include "support/file.h"

namespace collage {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// Sets the entries of nodes, those of nested graphs included, and returns how many got some.
size_t SetMetadata(Nodes& nodes, const std::map<std::string, OnnxMetadata>& by_node) {
  size_t count = 0;
  for (onnx::NodeProto& node : nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) count += SetMetadata(*attribute.mutable_g()->mutable_node(), by_node);
    }
    const auto found = by_node.find(NodeName(node));
    if (found == by_node.end()) continue;
    for (const auto& [key, value] : found->second) {
      onnx::StringStringEntryProto& entry = *node.add_metadata_props();
      entry.set_key(key);
      entry.set_value(value);
    }
    ++count;
  }
  return count;
}

}  // namespace

OnnxOutline ReadOutline(const std::filesystem::path& model) {
  onnx::ModelProto proto;
  ReadModelFile(model, proto);
  OnnxOutline outline;
  outline.graph = proto.graph().name();
  for (const onnx::NodeProto& node : proto.graph().node()) {
    outline.nodes.push_back({NodeName(node),
                             node.op_type(),
                             {node.input().begin(), node.input().end()},
                             {node.output().begin(), node.output().end()}});
  }
  for (const auto& input : proto.graph().input()) outline.inputs.push_back(input.name());
  for (const auto& output : proto.graph().output()) outline.outputs.push_back(output.name());
  return outline;
}

size_t WriteWithMetadata(const std::filesystem::path& model, const std::filesystem::path& copy,
                         const std::map<std::string, OnnxMetadata>& by_node) {
  onnx::ModelProto proto;
  ReadModelFile(model, proto);
  size_t count = SetMetadata(*proto.mutable_graph()->mutable_node(), by_node);
  for (onnx::FunctionProto& function : *proto.mutable_functions()) {
    count += SetMetadata(*function.mutable_node(), by_node);
  }
  if (count == 0) return 0;
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) {
    throw Error(ErrorCategory::kUnsupported, "the copy would be larger than 2 GB", copy.string(),
                "store the weights as external data");
  }
  AtomicFile file(copy);
  file.Write(bytes);
  file.Commit();
  return count;
}

}  // namespace collage
