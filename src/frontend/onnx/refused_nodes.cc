// refused_nodes.cc: which nodes of a model cannot be converted, for those who let somebody else compute them.
#include <algorithm>

#include "collage/frontend/onnx.h"
#include "collage/support/error.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/narrow_types.h"
#include "frontend/onnx/node_order.h"

namespace collage {

/// Whether the node and those of graphs within it have rows.
bool OnnxGraph::HasRows(const onnx::NodeProto& node) const {
  if (LocalFunction(node) == nullptr && RowOf(node) == nullptr) return false;
  return std::ranges::all_of(node.attribute(), [&](const auto& attribute) {
    return std::ranges::all_of(attribute.g().node(), [&](const auto& inner) { return HasRows(inner); });
  });
}

/// Takes a value that nothing here computes for an input; nodes that read one whose type is not stated find none.
void OnnxGraph::TakeForInput(const std::string& name, const onnx::ValueInfoProto* stated) {
  if (stated == nullptr || !stated->type().tensor_type().has_shape()) return;
  try {
    scopes_[0][name] = {InputParam(*stated), FindNarrowType(stated->type().tensor_type().elem_type())};
  } catch (const Error&) {  // NOLINT: as one whose type is not stated
  }
}

std::vector<RefusedOnnxNode> OnnxGraph::RefusedNodes() {
  Parse();
  scopes_.emplace_back();
  AddInitializers(model_.graph());
  AddInputs();
  std::map<std::string, const onnx::ValueInfoProto*> stated;
  for (const auto& value : model_.graph().value_info()) stated[value.name()] = &value;
  for (const auto& value : model_.graph().output()) stated[value.name()] = &value;
  std::map<const onnx::NodeProto*, size_t> places;
  for (const auto& node : model_.graph().node()) places.emplace(&node, places.size());
  std::vector<RefusedOnnxNode> refused;
  for (const onnx::NodeProto* node : NodesInOrder(model_.graph().node(), path_.string())) {
    try {
      if (!HasRows(*node)) throw Error(ErrorCategory::kUnsupported, "there is no such operator");
      Convert(*node);
    } catch (const Error& error) {
      if (error.category() == ErrorCategory::kInternal) throw;
      refused.push_back({places.at(node), error.message()});
      scopes_.resize(1);  // within a graph of the node
      calls_.clear();
      for (const std::string& output : node->output()) {
        const auto type = stated.find(output);
        TakeForInput(output, type == stated.end() ? nullptr : type->second);
      }
    }
  }
  return refused;
}

std::vector<RefusedOnnxNode> RefusedOnnxNodes(const std::filesystem::path& path) {
  OnnxGraph graph(path, {});
  std::vector<RefusedOnnxNode> refused = graph.RefusedNodes();
  if (refused.empty() || !graph.HasDynamicSizes()) return refused;
  std::vector<RefusedOnnxNode> without_zero = OnnxGraph(path, {}, /*least_size=*/1).RefusedNodes();  // as ImportOnnx
  return without_zero.size() < refused.size() ? without_zero : refused;
}

}  // namespace collage
