// index.cc: operators that read, write, find or order elements.
#include <algorithm>

#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Indices as ONNX takes them: int32 or int64.
std::string Indices(OnnxExportCall& call, size_t i) {
  const DataType dtype = call.DTypeOf(i);
  return dtype == kInt32 ? call.Arg(i) : call.Cast(call.Arg(i), dtype, kInt64);
}

/// Tuples of indices along the first axis, as Relay has them, along the last, as ONNX has them.
std::string TuplesLast(OnnxExportCall& call, size_t i) {
  V axes;
  for (int d = 1; d < call.Rank(i); ++d) axes.push_back(d);
  axes.push_back(0);
  return call.Cast(call.TransposedArg(i, axes), call.DTypeOf(i), kInt64);
}

AttrValue Reduction(OnnxExportCall& call, const char* attr) {
  const std::string& how = call.attrs().String(attr);
  if (how == "min" || how == "max") call.NeedsOpset(18);
  return how == "update" ? AttrValue() : AttrValue(how);
}

/// Relay clips indices beyond the end, ONNX has no such thing: they are taken to be within the data.
OnnxNames Take(OnnxExportCall& call) {
  const int64_t axis = call.Axis("axis", call.Rank(0));
  const int64_t batch = call.attrs().Int("batch_dims");
  if (batch == 0) return {call.Node("Gather", {call.Arg(0), Indices(call, 1)}, {{"axis", axis}})};
  if (batch != axis) call.Unsupported("batch_dims other than the axis");
  const std::string indices = call.Cast(call.Arg(1), call.DTypeOf(1), kInt64);
  return {call.Node("GatherND", {call.Arg(0), call.Unsqueeze(indices, {call.Rank(1)})}, {{"batch_dims", batch}})};
}

OnnxNames Gather(OnnxExportCall& call) {
  return {call.Node("GatherElements", {call.Arg(0), Indices(call, 1)}, {{"axis", call.attrs().Int("axis")}})};
}

OnnxNames GatherNd(OnnxExportCall& call) {
  return {call.Node("GatherND", {call.Arg(0), TuplesLast(call, 1)}, {{"batch_dims", call.attrs().Int("batch_dims")}})};
}

OnnxNames ScatterElements(OnnxExportCall& call) {
  return {call.Node("ScatterElements", {call.Arg(0), Indices(call, 1), call.Arg(2)},
                    {{"axis", call.attrs().Int("axis")}, {"reduction", Reduction(call, "reduction")}})};
}

OnnxNames ScatterNd(OnnxExportCall& call) {
  return {call.Node("ScatterND", {call.Arg(0), TuplesLast(call, 1), call.Arg(2)},
                    {{"reduction", Reduction(call, "mode")}})};
}

OnnxNames ArgWhere(OnnxExportCall& call) {
  const std::string places = call.Transpose(call.Node("NonZero", {call.Arg(0)}), {1, 0});
  return {call.Cast(places, kInt64, call.ResultType().dtype())};
}

OnnxNames Unique(OnnxExportCall& call) {
  const AttrValue& axis = call.attrs().Get("axis");
  const OnnxNames found =
      call.NodeWithResults("Unique", {call.Arg(0)}, {{"sorted", call.attrs().Bool("sorted")}, {"axis", axis}}, 4);
  OnnxNames results{found[0], call.Cast(found[1], kInt64, call.ResultType(1).dtype()),
                    call.Cast(found[2], kInt64, call.ResultType(2).dtype())};
  const std::string count = call.Node("Shape", {found[1]});
  const TensorTypeNode& count_type = call.ResultType(3);
  const std::string shaped = count_type.rank() == 0 ? call.Reshape(count, {}) : count;
  results.push_back(call.Cast(shaped, kInt64, count_type.dtype()));
  if (call.attrs().Bool("return_counts")) results.push_back(call.Cast(found[3], kInt64, call.ResultType(4).dtype()));
  return results;
}

/// The first `k` along an axis in order, values and positions. A `k` below 1: all.
OnnxNames First(OnnxExportCall& call, int64_t k, bool ascending) {
  const int64_t axis = call.Axis("axis", call.Rank(0));
  if (k < 1) k = call.ShapeOf(0)[static_cast<size_t>(axis)];
  return call.NodeWithResults("TopK", {call.Arg(0), call.Ints({k})}, {{"axis", axis}, {"largest", !ascending}}, 2);
}

OnnxNames Sort(OnnxExportCall& call) { return {First(call, 0, call.attrs().Bool("is_ascend"))[0]}; }

OnnxNames ArgSort(OnnxExportCall& call) {
  return {call.Cast(First(call, 0, call.attrs().Bool("is_ascend"))[1], kInt64, call.ResultType().dtype())};
}

OnnxNames TopK(OnnxExportCall& call) {
  OnnxNames both = First(call, call.attrs().Int("k"), call.attrs().Bool("is_ascend"));
  both[1] = call.Cast(both[1], kInt64, call.attrs().Type("dtype"));
  const std::string& kind = call.attrs().String("ret_type");
  return kind == "both" ? both : OnnxNames{both[kind == "values" ? 0 : 1]};
}

OnnxNames ReverseSequence(OnnxExportCall& call) {
  const int64_t time = call.Axis("seq_axis", call.Rank(0));
  const int64_t batch = call.Axis("batch_axis", call.Rank(0));
  if (time + batch != 1) call.Unsupported("sequences along other axes than 0 and 1");
  return {call.Node("ReverseSequence", {call.Arg(0), call.Cast(call.Arg(1), call.DTypeOf(1), kInt64)},
                    {{"time_axis", time}, {"batch_axis", batch}})};
}

OnnxNames Trilu(OnnxExportCall& call) {
  return {call.Node("Trilu", {call.Arg(0), call.Cast(call.Arg(1), call.DTypeOf(1), kInt64)},
                    {{"upper", call.attrs().Bool("upper")}})};
}

OnnxNames OneHot(OnnxExportCall& call) {
  const DataType dtype = call.ResultType().dtype();
  const auto value = [&](size_t i) { return call.Unsqueeze(call.Cast(call.Arg(i), call.DTypeOf(i), dtype), {0}); };
  const std::string off_on = call.Node("Concat", {value(2), value(1)}, {{"axis", 0}});
  return {call.Node("OneHot", {Indices(call, 0), call.Int(call.attrs().Int("depth")), off_on},
                    {{"axis", call.attrs().Int("axis")}})};
}

}  // namespace

void AddIndexRows(OnnxExportRows& rows) {
  rows["take"] = Take;
  rows["gather"] = Gather;
  rows["gather_nd"] = GatherNd;
  rows["scatter_elements"] = ScatterElements;
  rows["scatter_nd"] = ScatterNd;
  rows["argwhere"] = ArgWhere;
  rows["unique"] = Unique;
  rows["sort"] = Sort;
  rows["argsort"] = ArgSort;
  rows["topk"] = TopK;
  rows["reverse_sequence"] = ReverseSequence;
  rows["trilu"] = Trilu;
  rows["one_hot"] = OneHot;
}

}  // namespace collage
