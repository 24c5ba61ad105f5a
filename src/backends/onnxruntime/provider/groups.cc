// groups.cc: nodes are taken in rounds: first all that others can compute by then, next all of ours.
#include "backends/onnxruntime/provider/groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace collage::onnxruntime {
namespace {

/// Adds what `node` reads, graphs within it included, but for what these make themselves.
void AddReads(const onnx::NodeProto& node, std::set<std::string>& reads) {
  for (const std::string& input : node.input()) {
    if (!input.empty()) reads.insert(input);
  }
  for (const auto& attribute : node.attribute()) {
    std::set<std::string> within, own;
    for (const auto& input : attribute.g().input()) own.insert(input.name());
    for (const auto& initializer : attribute.g().initializer()) own.insert(initializer.name());
    for (const auto& inner : attribute.g().node()) {
      AddReads(inner, within);
      own.insert(inner.output().begin(), inner.output().end());
    }
    for (const auto& output : attribute.g().output()) within.insert(output.name());
    std::ranges::set_difference(within, own, std::inserter(reads, reads.end()));
  }
}

std::set<std::string> ReadsOf(const onnx::NodeProto& node) {
  std::set<std::string> reads;
  AddReads(node, reads);
  return reads;
}

/// The values that nodes outside of the group, whose values are `made`, or users of the model read.
std::set<std::string> ReadOutside(const onnx::GraphProto& graph, const std::set<int>& group,
                                  const std::set<std::string>& made) {
  std::set<std::string> read;
  const auto add = [&](const std::string& name) {
    if (made.contains(name)) read.insert(name);
  };
  for (int i = 0; i < graph.node_size(); ++i) {
    if (group.contains(i)) continue;
    for (const std::string& name : ReadsOf(graph.node(i))) add(name);
  }
  for (const auto& output : graph.output()) add(output.name());
  return read;
}

std::map<std::string, const onnx::ValueInfoProto*> StatedTypes(const onnx::GraphProto& graph) {
  std::map<std::string, const onnx::ValueInfoProto*> stated;
  for (const auto* values : {&graph.value_info(), &graph.input(), &graph.output()}) {
    for (const auto& value : *values) stated[value.name()] = &value;
  }
  return stated;
}

void AddPort(const std::map<std::string, const onnx::ValueInfoProto*>& stated, const std::string& name,
             onnx::ValueInfoProto& port) {
  const auto found = stated.find(name);
  if (found != stated.end()) port = *found->second;
  port.set_name(name);
}

}  // namespace

std::vector<NodeGroup> GroupNodes(const onnx::GraphProto& graph, const std::vector<bool>& taken) {
  std::map<std::string, int> maker;
  std::vector<size_t> rounds(static_cast<size_t>(graph.node_size()), 0);
  std::vector<NodeGroup> groups;
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    for (const std::string& name : ReadsOf(graph.node(i))) {
      const auto found = maker.find(name);
      if (found == maker.end()) continue;
      const auto before = static_cast<size_t>(found->second);
      rounds[at] = std::max(rounds[at], rounds[before] + (taken[before] && !taken[at] ? 1 : 0));
    }
    for (const std::string& name : graph.node(i).output()) maker[name] = i;
    if (!taken[at]) continue;
    groups.resize(std::max(groups.size(), rounds[at] + 1));
    groups[rounds[at]].push_back(i);
  }
  std::erase_if(groups, [](const NodeGroup& group) { return group.empty(); });
  return groups;
}

onnx::ModelProto ModelOfGroup(const onnx::ModelProto& model, const NodeGroup& group) {
  onnx::ModelProto result;
  result.set_ir_version(model.ir_version());
  *result.mutable_opset_import() = model.opset_import();
  const onnx::GraphProto& graph = model.graph();
  onnx::GraphProto& part = *result.mutable_graph();
  part.set_name(graph.name());
  std::set<std::string> made, reads;
  for (const int place : group) {
    *part.add_node() = graph.node(place);
    made.insert(graph.node(place).output().begin(), graph.node(place).output().end());
    AddReads(graph.node(place), reads);
  }
  std::erase_if(reads, [&](const std::string& name) { return made.contains(name); });
  for (const auto& initializer : graph.initializer()) {
    if (reads.erase(initializer.name()) > 0) *part.add_initializer() = initializer;
  }
  const auto stated = StatedTypes(graph);
  for (const std::string& name : reads) AddPort(stated, name, *part.add_input());
  for (const std::string& name : ReadOutside(graph, {group.begin(), group.end()}, made)) {
    AddPort(stated, name, *part.add_output());
  }
  for (const auto& value : graph.value_info()) {
    if (made.contains(value.name())) *part.add_value_info() = value;
  }
  return result;
}

}  // namespace collage::onnxruntime
