// shape.cc: operators that shape, move, join and make tensors.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "frontend/onnx_export/exporter.h"
#include "ir/shapes/reshape_pattern.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Sizes that are one of the argument's are taken from its shape, if there are several that only a run knows.
OnnxNames Reshape(OnnxExportCall& call) {
  const std::vector<Dim>& to = call.ResultType().shape();
  if (std::ranges::count_if(to, &Dim::is_any) < 2) return {call.Reshape(call.Arg(0), call.ResultSizes())};
  const bool is_literal = call.attrs().Has("allowzero") && call.attrs().Bool("allowzero");
  const auto pattern = FindReshapePattern(call.TypeOf(0).shape(), to, is_literal ? V{} : call.attrs().Ints("newshape"));
  if (!pattern) call.Unsupported("more than one size that is known at run time only");
  if (!pattern->needs_shape()) return {call.Node("Reshape", {call.Arg(0), call.Ints(pattern->sizes)})};
  const std::string shape = call.Node("Shape", {call.Arg(0)});
  OnnxNames sizes;
  for (size_t i = 0; i < pattern->sizes.size(); ++i) {
    const bool is_copy = pattern->sizes[i] == ReshapePattern::kFromShape;
    sizes.push_back(is_copy ? call.Node("Gather", {shape, call.Ints({pattern->dims[i]})}, {{"axis", 0}})
                            : call.Ints({pattern->sizes[i]}));
  }
  return {call.Node("Reshape", {call.Arg(0), call.Node("Concat", sizes, {{"axis", 0}})})};
}

OnnxNames ExpandDims(OnnxExportCall& call) {
  const int64_t count = call.attrs().Int("num_newaxis");
  const int64_t axis = call.Axis("axis", call.Rank(0) + 1);
  V axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), axis);
  return {call.Unsqueeze(call.Arg(0), axes)};
}

OnnxNames Squeeze(OnnxExportCall& call) {
  if (call.attrs().IsNone("axis")) return {call.Node("Squeeze", {call.Arg(0)})};
  return {call.Node("Squeeze", {call.Arg(0), call.Ints(call.attrs().Ints("axis"))})};
}

OnnxNames Transpose(OnnxExportCall& call) {
  if (call.attrs().IsNone("axes")) return {call.Node("Transpose", {call.Arg(0)})};
  V axes = call.attrs().Ints("axes");
  for (int64_t& axis : axes) axis += axis < 0 ? call.Rank(0) : 0;
  return {call.Node("Transpose", {call.Arg(0)}, {{"perm", axes}})};
}

OnnxNames Concatenate(OnnxExportCall& call) {
  return {call.Node("Concat", call.Fields(0), {{"axis", call.Axis("axis", call.ResultType().rank())}})};
}

OnnxNames Stack(OnnxExportCall& call) {
  const int64_t axis = call.Axis("axis", call.ResultType().rank());
  OnnxNames parts;
  for (const std::string& field : call.Fields(0)) parts.push_back(call.Unsqueeze(field, {axis}));
  return {call.Node("Concat", parts, {{"axis", axis}})};
}

OnnxNames Split(OnnxExportCall& call) {
  const int64_t axis = call.Axis("axis", call.Rank(0));
  const Dim& dim = call.TypeOf(0).shape()[static_cast<size_t>(axis)];
  if (dim.is_any()) call.Unsupported("a split of a size that is known at run time only");
  const int64_t length = dim.size();
  const AttrValue& how = call.attrs().Get("indices_or_sections");
  V sizes;
  if (how.as_int() != nullptr) {
    sizes.assign(static_cast<size_t>(*how.as_int()), length / *how.as_int());
  } else {
    int64_t at = 0;
    for (int64_t cut : call.attrs().Ints("indices_or_sections")) {
      sizes.push_back(cut - at);
      at = cut;
    }
    sizes.push_back(length - at);
  }
  return call.NodeWithResults("Split", {call.Arg(0), call.Ints(sizes)}, {{"axis", axis}}, sizes.size());
}

OnnxNames StridedSlice(OnnxExportCall& call) {
  const V begin = call.attrs().Ints("begin");
  V axes(begin.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (!call.attrs().IsNone("axes")) axes = call.attrs().Ints("axes");
  V strides(begin.size(), 1);
  if (!call.attrs().IsNone("strides")) strides = call.attrs().Ints("strides");
  strides.resize(begin.size(), strides.size() == 1 ? strides[0] : 1);
  return {call.Node("Slice", {call.Arg(0), call.Ints(begin), call.Ints(call.attrs().Ints("end")), call.Ints(axes),
                              call.Ints(strides)})};
}

OnnxNames BroadcastTo(OnnxExportCall& call) {
  return {call.Node("Expand", {call.Arg(0), call.Ints(call.ResultSizes())})};
}

OnnxNames Tile(OnnxExportCall& call) {
  V reps = call.attrs().Ints("reps");
  std::string x = call.Arg(0);
  const auto rank = static_cast<size_t>(call.Rank(0));
  if (reps.size() < rank) reps.insert(reps.begin(), rank - reps.size(), 1);
  V added(reps.size() - rank);
  std::iota(added.begin(), added.end(), 0);
  return {call.Node("Tile", {call.Unsqueeze(x, added), call.Ints(reps)})};
}

/// A new axis of copies behind the one that is repeated, merged with it.
OnnxNames Repeat(OnnxExportCall& call) {
  const int rank = call.Rank(0);
  const int64_t axis = call.Axis("axis", rank);
  V reps(static_cast<size_t>(rank) + 1, 1);
  reps[static_cast<size_t>(axis) + 1] = call.attrs().Int("repeats");
  const std::string copies = call.Node("Tile", {call.Unsqueeze(call.Arg(0), {axis + 1}), call.Ints(reps)});
  return {call.Reshape(copies, call.ResultSizes())};
}

OnnxNames Reverse(OnnxExportCall& call) {
  const int64_t axis = call.Axis("axis", call.Rank(0));
  return {call.Node("Slice", {call.Arg(0), call.Ints({-1}), call.Ints({std::numeric_limits<int64_t>::min()}),
                              call.Ints({axis}), call.Ints({-1})})};
}

OnnxNames BatchFlatten(OnnxExportCall& call) { return {call.Node("Flatten", {call.Arg(0)}, {{"axis", 1}})}; }

OnnxNames Full(OnnxExportCall& call) {
  const std::string value = call.Cast(call.Arg(0), call.DTypeOf(0), call.ResultType().dtype());
  return {call.Node("Expand", {value, call.Ints(call.ResultSizes())})};
}

OnnxExportRow Filled(double value) {
  return [value](OnnxExportCall& call) -> OnnxNames {
    return {call.Node("Expand", {call.Scalar(value, call.ResultType().dtype()), call.Ints(call.ResultSizes())})};
  };
}

OnnxNames Arange(OnnxExportCall& call) {
  const DataType dtype = call.DTypeOf(0);
  return {call.Cast(call.Node("Range", {call.Arg(0), call.Arg(1), call.Arg(2)}), dtype, call.ResultType().dtype())};
}

/// Random numbers, whose stream is the order of nodes in ONNX.
OnnxExportRow Drawn(const std::string& op) {
  return [op](OnnxExportCall& call) -> OnnxNames {
    Attrs attributes{{"dtype", OnnxTypeOf(call.ResultType().dtype())}};
    if (!call.attrs().IsNone("seed")) {
      const int64_t seed = call.attrs().Int("seed");
      const auto written = static_cast<float>(seed);
      if (static_cast<int64_t>(written) != seed) call.Unsupported(fmt::format("the seed {}", seed));
      attributes.Set("seed", static_cast<double>(written));
    }
    if (call.num_args() > 0) return {call.Node(op + "Like", {call.Arg(0)}, attributes)};
    attributes.Set("shape", call.attrs().Ints("shape"));
    return {call.Node(op, {}, attributes)};
  };
}

OnnxNames ShapeOf(OnnxExportCall& call) {
  return {call.Cast(call.Node("Shape", {call.Arg(0)}), kInt64, call.ResultType().dtype())};
}

OnnxNames NdarraySize(OnnxExportCall& call) {
  return {call.Cast(call.Node("Size", {call.Arg(0)}), kInt64, call.ResultType().dtype())};
}

OnnxNames LayoutTransform(OnnxExportCall& call) {
  const std::string& from = call.attrs().String("src_layout");
  const std::string& to = call.attrs().String("dst_layout");
  V axes;
  for (char dimension : to) {
    const size_t at = from.find(dimension);
    if (at == std::string::npos || from.size() != to.size()) call.Unsupported("a layout with parts of dimensions");
    axes.push_back(static_cast<int64_t>(at));
  }
  return {call.Node("Transpose", {call.Arg(0)}, {{"perm", axes}})};
}

}  // namespace

void AddShapeRows(OnnxExportRows& rows) {
  rows["reshape"] = Reshape;
  rows["expand_dims"] = ExpandDims;
  rows["squeeze"] = Squeeze;
  rows["transpose"] = Transpose;
  rows["concatenate"] = Concatenate;
  rows["stack"] = Stack;
  rows["split"] = Split;
  rows["strided_slice"] = StridedSlice;
  rows["broadcast_to"] = BroadcastTo;
  rows["tile"] = Tile;
  rows["repeat"] = Repeat;
  rows["reverse"] = Reverse;
  rows["nn.batch_flatten"] = BatchFlatten;
  rows["full"] = Full;
  rows["zeros"] = Filled(0);
  rows["ones"] = Filled(1);
  rows["arange"] = Arange;
  rows["random.uniform"] = Drawn("RandomUniform");
  rows["random.normal"] = Drawn("RandomNormal");
  rows["shape_of"] = ShapeOf;
  rows["ndarray_size"] = NdarraySize;
  rows["layout_transform"] = LayoutTransform;
}

}  // namespace collage
