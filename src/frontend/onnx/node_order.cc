// node_order.cc: Kahn's algorithm, which takes the first of the nodes that can be next.
#include "frontend/onnx/node_order.h"

#include <fmt/format.h>

#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "collage/support/error.h"

namespace collage {
namespace {

using Names = std::unordered_set<std::string>;

Names NamesRead(const onnx::NodeProto& node);

/// Adds what `graph` reads from outside of it.
void AddCaptured(const onnx::GraphProto& graph, Names& names) {
  Names own, read;
  for (const auto& input : graph.input()) own.insert(input.name());
  for (const auto& initializer : graph.initializer()) own.insert(initializer.name());
  for (const auto& node : graph.node()) {
    own.insert(node.output().begin(), node.output().end());
    read.merge(NamesRead(node));
  }
  for (const auto& output : graph.output()) read.insert(output.name());
  for (const std::string& name : read) {
    if (!own.contains(name)) names.insert(name);
  }
}

Names NamesRead(const onnx::NodeProto& node) {
  Names names(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) AddCaptured(attribute.g(), names);
  }
  names.erase("");
  return names;
}

}  // namespace

const std::string& NodeName(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  return node.output_size() > 0 ? node.output(0) : node.op_type();
}

std::vector<const onnx::NodeProto*> NodesInOrder(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                                 const std::string& where) {
  const auto count = static_cast<size_t>(nodes.size());
  std::unordered_map<std::string, size_t> producer;  // name → the first node that computes it
  for (size_t i = 0; i < count; ++i) {
    for (const std::string& name : nodes[static_cast<int>(i)].output()) producer.emplace(name, i);
  }
  std::vector<std::vector<size_t>> readers(count);  // node → those that read what it computes
  std::vector<size_t> missing(count, 0);            // node → how many of those that it waits for are not placed yet
  for (size_t i = 0; i < count; ++i) {
    for (const std::string& name : NamesRead(nodes[static_cast<int>(i)])) {
      const auto it = producer.find(name);
      if (it == producer.end()) continue;
      readers[it->second].push_back(i);
      ++missing[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<const onnx::NodeProto*> order;
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    order.push_back(&nodes[static_cast<int>(next)]);
    for (size_t reader : readers[next]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() == count) return order;
  std::string names;
  for (size_t i = 0; i < count; ++i) {
    if (missing[i] == 0) continue;
    const onnx::NodeProto& node = nodes[static_cast<int>(i)];
    const std::string& name = NodeName(node);
    names += fmt::format("{}'{}' ({})", names.empty() ? "" : ", ", name, node.op_type());
  }
  throw Error(ErrorCategory::kInput, "nodes read each other's outputs in a cycle, or what comes of it: " + names,
              where);
}

}  // namespace collage
