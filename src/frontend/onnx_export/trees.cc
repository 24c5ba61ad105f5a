// trees.cc: walks through decision trees, a step after the other.
#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

/// `x`, integers, as places of a dimension of `size`.
std::string Clipped(OnnxExportCall& call, const std::string& x, int64_t size) {
  return call.Node("Clip", {x, call.Int(0), call.Int(size - 1)});
}

/// The child that follows each of `nodes` [N, T].
std::string Step(OnnxExportCall& call, const OnnxNames& tables, const std::string& nodes) {
  const std::string &features = tables[0], &children = tables[1];
  const std::string at = Clipped(call, nodes, call.ShapeOf(2)[0]);
  const std::string feature = Clipped(call, call.Node("Gather", {features, at}), call.ShapeOf(0)[1]);
  const std::string number = call.Node("GatherElements", {call.Arg(0), feature}, {{"axis", 1}});
  const std::string threshold = call.Node("Gather", {call.Arg(3), at});
  const auto child = [&](int64_t branch) {
    const std::string column = call.Node("Gather", {children, call.Int(branch)}, {{"axis", 1}});
    return call.Node("Gather", {column, at});
  };
  const std::string is_greater = call.Node("Greater", {number, threshold});
  const std::string is_at_most = call.Node("LessOrEqual", {number, threshold});
  const std::string other = call.Node("Where", {is_greater, child(1), child(2)});
  const std::string next = call.Node("Where", {is_at_most, child(0), other});
  return call.Node("Where", {call.Node("Less", {nodes, call.Int(0)}), nodes, next});
}

OnnxNames TreeLeaves(OnnxExportCall& call) {
  const auto wide = [&](size_t i) { return call.Cast(call.Arg(i), call.DTypeOf(i), kInt64); };
  const std::string rows = call.Node("Shape", {call.Arg(0)}, {{"start", 0}, {"end", 1}});
  const std::string trees = call.Node("Shape", {call.Arg(1)});
  const std::string shape = call.Node("Concat", {rows, trees}, {{"axis", 0}});
  const OnnxNames tables{wide(2), wide(4)};
  std::string nodes = call.Node("Expand", {wide(1), shape});
  for (int64_t step = 0; step < call.attrs().Int("depth"); ++step) nodes = Step(call, tables, nodes);
  const std::string leaf = call.Node("Sub", {call.Int(-1), nodes});
  return {call.Cast(call.Node("Max", {leaf, call.Int(0)}), kInt64, kInt32)};
}

}  // namespace

void AddTreeRows(OnnxExportRows& rows) { rows["ml.tree_leaves"] = TreeLeaves; }

}  // namespace collage
