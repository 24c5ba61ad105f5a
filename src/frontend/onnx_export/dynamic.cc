// dynamic.cc: operators whose sizes are arguments; ONNX has no others.
#include <algorithm>
#include <numeric>

#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Argument `i`, integers, as int64.
std::string Sizes(OnnxExportCall& call, size_t i) { return call.Cast(call.Arg(i), call.DTypeOf(i), kInt64); }

/// How many elements argument `i` has.
int64_t CountOf(OnnxExportCall& call, size_t i) {
  const Shape shape = call.ShapeOf(i);
  return shape.empty() ? 1 : shape[0];
}

OnnxNames BroadcastTo(OnnxExportCall& call) { return {call.Node("Expand", {call.Arg(0), Sizes(call, 1)})}; }

OnnxNames Reshape(OnnxExportCall& call) {
  return {call.Node("Reshape", {call.Arg(0), Sizes(call, 1)},
                    {{"allowzero", call.attrs().Bool("allowzero") ? AttrValue(1) : AttrValue()}})};
}

/// ONNX wants as many repetitions as there are dimensions; Relay adds whichever are too few, in front.
OnnxNames Tile(OnnxExportCall& call) {
  const int64_t missing = call.Rank(0) - CountOf(call, 1);
  std::string reps = Sizes(call, 1);
  if (missing > 0) {
    reps = call.Node("Concat", {call.Ints(V(static_cast<size_t>(missing), 1)), reps}, {{"axis", 0}});
  }
  V added(static_cast<size_t>(std::max<int64_t>(-missing, 0)));
  std::iota(added.begin(), added.end(), 0);
  return {call.Node("Tile", {call.Unsqueeze(call.Arg(0), added), reps})};
}

OnnxNames Full(OnnxExportCall& call) {
  const std::string value = call.Cast(call.Arg(0), call.DTypeOf(0), call.ResultType().dtype());
  return {call.Node("Expand", {value, Sizes(call, 1)})};
}

OnnxExportRow Filled(double value) {
  return [value](OnnxExportCall& call) -> OnnxNames {
    return {call.Node("Expand", {call.Scalar(value, call.ResultType().dtype()), Sizes(call, 0)})};
  };
}

OnnxNames Squeeze(OnnxExportCall& call) { return {call.Node("Squeeze", {call.Arg(0), Sizes(call, 1)})}; }

/// Relay counts a negative axis from behind all dimensions and one more, ONNX from behind those of the result.
OnnxNames ExpandDims(OnnxExportCall& call) {
  const std::string given = call.Reshape(Sizes(call, 1), {1});
  const std::string from_behind = call.Node("Add", {given, call.Ints({call.Rank(0) + 1})});
  const std::string first = call.Node("Where", {call.Node("Less", {given, call.Ints({0})}), from_behind, given});
  V offsets(static_cast<size_t>(call.attrs().Int("num_newaxis")));
  std::iota(offsets.begin(), offsets.end(), 0);
  return {call.Node("Unsqueeze", {call.Arg(0), call.Node("Add", {first, call.Ints(offsets)})})};
}

/// ONNX wants all widths before the data, then all behind.
OnnxNames Pad(OnnxExportCall& call) {
  const std::string& mode = call.attrs().String("pad_mode");
  const std::string pads = call.Reshape(call.Transpose(Sizes(call, 1), {1, 0}), {-1});
  return {call.Node("Pad", {call.Arg(0), pads, mode == "constant" ? call.Arg(2) : ""}, {{"mode", mode}})};
}

OnnxNames OneHot(OnnxExportCall& call) {
  const DataType dtype = call.ResultType().dtype();
  const auto value = [&](size_t i) { return call.Unsqueeze(call.Cast(call.Arg(i), call.DTypeOf(i), dtype), {0}); };
  const std::string off_on = call.Node("Concat", {value(2), value(1)}, {{"axis", 0}});
  return {call.Node("OneHot", {Sizes(call, 0), call.Reshape(Sizes(call, 3), {1}), off_on},
                    {{"axis", call.attrs().Int("axis")}})};
}

OnnxNames StridedSlice(OnnxExportCall& call) {
  V axes(static_cast<size_t>(call.ShapeOf(1).at(0)));
  std::iota(axes.begin(), axes.end(), 0);
  const AttrValue* given = call.attrs().Find("axes");
  if (given != nullptr && !given->is_none()) axes = call.attrs().Ints("axes");
  std::string strides = Sizes(call, 3);
  if (CountOf(call, 3) == 1 && axes.size() != 1) {
    strides = call.Node("Expand", {strides, call.Ints({static_cast<int64_t>(axes.size())})});
  }
  return {call.Node("Slice", {call.Arg(0), Sizes(call, 1), Sizes(call, 2), call.Ints(axes), strides})};
}

/// A k below 1 asks for all.
OnnxNames TopK(OnnxExportCall& call) {
  const Attrs& attrs = call.attrs();
  const int64_t axis = call.Axis("axis", call.Rank(0));
  const std::string k = call.Reshape(Sizes(call, 1), {1});
  const std::string all = call.Node("Shape", {call.Arg(0)}, {{"start", axis}, {"end", axis + 1}});
  const std::string count = call.Node("Where", {call.Node("Less", {k, call.Ints({1})}), all, k});
  OnnxNames both =
      call.NodeWithResults("TopK", {call.Arg(0), count}, {{"axis", axis}, {"largest", !attrs.Bool("is_ascend")}}, 2);
  both[1] = call.Cast(both[1], kInt64, attrs.Type("dtype"));
  const std::string& kind = attrs.String("ret_type");
  return kind == "both" ? both : OnnxNames{both[kind == "values" ? 0 : 1]};
}

}  // namespace

void AddDynamicRows(OnnxExportRows& rows) {
  rows["dyn.broadcast_to"] = BroadcastTo;
  rows["dyn.reshape"] = Reshape;
  rows["dyn.tile"] = Tile;
  rows["dyn.expand_dims"] = ExpandDims;
  rows["dyn.full"] = Full;
  rows["dyn.nn.pad"] = Pad;
  rows["dyn.one_hot"] = OneHot;
  rows["dyn.squeeze"] = Squeeze;
  rows["dyn.zeros"] = Filled(0);
  rows["dyn.ones"] = Filled(1);
  rows["dyn.strided_slice"] = StridedSlice;
  rows["dyn.topk"] = TopK;
}

}  // namespace collage
