// finish_graph.cc: forms that depend on the opset, and what nobody reads.
#include "frontend/onnx_export/finish_graph.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

namespace collage {
namespace {

using google::protobuf::RepeatedPtrField;
using Constants = std::map<std::string, const onnx::TensorProto*>;

/// Whether an operator has its axes as an input from opset 18 on. (ReduceSum has had them since 13.)
bool IsReduction(const std::string& op_type) { return op_type.starts_with("Reduce") && op_type != "ReduceSum"; }

void MoveAxes(onnx::NodeProto& node, const Constants& constants) {
  if (node.input_size() < 2) return;
  const auto axes = constants.find(node.input(1));
  if (axes == constants.end()) return;
  const std::string& bytes = axes->second->raw_data();
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("axes");
  attribute.set_type(onnx::AttributeProto::INTS);
  for (size_t at = 0; at + sizeof(int64_t) <= bytes.size(); at += sizeof(int64_t)) {
    int64_t axis = 0;
    std::memcpy(&axis, bytes.data() + at, sizeof axis);
    attribute.add_ints(axis);
  }
  node.mutable_input()->RemoveLast();
}

void MoveAllAxes(onnx::GraphProto& graph, const Constants& constants) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (IsReduction(node.op_type())) MoveAxes(node, constants);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) MoveAllAxes(*attribute.mutable_g(), constants);
    }
  }
}

}  // namespace

void ForEachNestedName(const onnx::NodeProto& node, const std::function<void(const std::string&)>& visit) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    for (const onnx::NodeProto& inner : attribute.g().node()) {
      for (const std::string& input : inner.input()) visit(input);
      ForEachNestedName(inner, visit);
    }
    for (const onnx::ValueInfoProto& output : attribute.g().output()) visit(output.name());
  }
}

void WriteAxesAsAttributes(onnx::GraphProto& graph) {
  Constants constants;
  for (const onnx::TensorProto& constant : graph.initializer()) constants[constant.name()] = &constant;
  MoveAllAxes(graph, constants);
}

void DropUnread(onnx::GraphProto& graph) {
  std::set<std::string> read;
  for (const onnx::ValueInfoProto& output : graph.output()) read.insert(output.name());
  RepeatedPtrField<onnx::NodeProto> nodes;
  nodes.Swap(graph.mutable_node());
  std::vector<onnx::NodeProto*> kept;
  for (int i = nodes.size() - 1; i >= 0; --i) {
    onnx::NodeProto& node = *nodes.Mutable(i);
    const auto is_read = [&](const std::string& name) { return read.contains(name); };
    if (std::none_of(node.output().begin(), node.output().end(), is_read)) continue;
    read.insert(node.input().begin(), node.input().end());
    ForEachNestedName(node, [&](const std::string& name) { read.insert(name); });
    kept.push_back(&node);
  }
  for (auto node = kept.rbegin(); node != kept.rend(); ++node) graph.add_node()->Swap(*node);
  RepeatedPtrField<onnx::TensorProto> constants;
  constants.Swap(graph.mutable_initializer());
  for (onnx::TensorProto& constant : constants) {
    if (read.contains(constant.name())) graph.add_initializer()->Swap(&constant);
  }
}

}  // namespace collage
