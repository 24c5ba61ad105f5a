// dynamic.cc: operators whose sizes are arguments; ONNX has no others.
#include <numeric>

#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Argument `i`, integers, as int64.
std::string Sizes(OnnxExportCall& call, size_t i) { return call.Cast(call.Arg(i), call.DTypeOf(i), kInt64); }

OnnxExportRow WithSizes(const char* onnx) {
  return [onnx](OnnxExportCall& call) -> OnnxNames { return {call.Node(onnx, {call.Arg(0), Sizes(call, 1)})}; };
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

OnnxNames StridedSlice(OnnxExportCall& call) {
  V axes(static_cast<size_t>(call.ShapeOf(1).at(0)));
  std::iota(axes.begin(), axes.end(), 0);
  const AttrValue* given = call.attrs().Find("axes");
  if (given != nullptr && !given->is_none()) axes = call.attrs().Ints("axes");
  return {call.Node("Slice", {call.Arg(0), Sizes(call, 1), Sizes(call, 2), call.Ints(axes), Sizes(call, 3)})};
}

OnnxNames TopK(OnnxExportCall& call) {
  const Attrs& attrs = call.attrs();
  const std::string k = call.Reshape(Sizes(call, 1), {1});
  OnnxNames both = call.NodeWithResults("TopK", {call.Arg(0), k},
                                        {{"axis", attrs.Int("axis")}, {"largest", !attrs.Bool("is_ascend")}}, 2);
  both[1] = call.Cast(both[1], kInt64, attrs.Type("dtype"));
  const std::string& kind = attrs.String("ret_type");
  return kind == "both" ? both : OnnxNames{both[kind == "values" ? 0 : 1]};
}

}  // namespace

void AddDynamicRows(OnnxExportRows& rows) {
  rows["dyn.broadcast_to"] = WithSizes("Expand");
  rows["dyn.reshape"] = WithSizes("Reshape");
  rows["dyn.tile"] = WithSizes("Tile");
  rows["dyn.full"] = Full;
  rows["dyn.zeros"] = Filled(0);
  rows["dyn.ones"] = Filled(1);
  rows["dyn.strided_slice"] = StridedSlice;
  rows["dyn.topk"] = TopK;
}

}  // namespace collage
