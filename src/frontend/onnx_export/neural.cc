// neural.cc: pooling, padding, biases.
#include <fmt/format.h>

#include "frontend/onnx_export/exporter.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

const char* Layout(int rank) { return rank == 1 ? "NCW" : rank == 2 ? "NCHW" : "NCDHW"; }

Attrs PoolAttrs(OnnxExportCall& call, int rank) {
  const Attrs& attrs = call.attrs();
  call.Require("layout", Layout(rank));
  const Padding padding = SpatialPadding(attrs, rank);
  V pads = padding.before;
  pads.insert(pads.end(), padding.after.begin(), padding.after.end());
  return {{"kernel_shape", PerDimension(attrs.Ints("pool_size"), rank)},
          {"strides", PerDimension(attrs.Ints("strides"), rank)},
          {"dilations", PerDimension(attrs.Ints("dilation"), rank)},
          {"pads", pads},
          {"ceil_mode", attrs.Bool("ceil_mode")}};
}

OnnxExportRow MaxPool(int rank) {
  return [rank](OnnxExportCall& call) -> OnnxNames {
    return {call.Node("MaxPool", {call.Arg(0)}, PoolAttrs(call, rank))};
  };
}

OnnxExportRow MaxPoolIndices(int rank) {
  return [rank](OnnxExportCall& call) -> OnnxNames {
    Attrs attributes = PoolAttrs(call, rank);
    attributes.Set("storage_order", call.attrs().Bool("column_major"));
    return {call.NodeWithResults("MaxPool", {call.Arg(0)}, attributes, 2)[1]};
  };
}

OnnxExportRow AveragePool(int rank) {
  return [rank](OnnxExportCall& call) -> OnnxNames {
    Attrs attributes = PoolAttrs(call, rank);
    attributes.Set("count_include_pad", call.attrs().Bool("count_include_pad"));
    const V dilation = PerDimension(call.attrs().Ints("dilation"), rank);
    if (dilation == V(static_cast<size_t>(rank), 1)) {
      attributes.Erase("dilations");
    } else {
      call.NeedsOpset(19);
    }
    return {call.Node("AveragePool", {call.Arg(0)}, attributes)};
  };
}

OnnxExportRow GlobalPool(const char* onnx, int rank) {
  return [onnx, rank](OnnxExportCall& call) -> OnnxNames {
    call.Require("layout", Layout(rank));
    return {call.Node(onnx, {call.Arg(0)})};
  };
}

/// Means of the parts that `size` elements are cut into, as a product: [parts, size].
Tensor MeansOfParts(int64_t size, int64_t parts, DataType dtype) {
  Tensor matrix = Tensor::Zeros({parts, size}, dtype);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = part * size / parts;
    const int64_t end = ((part + 1) * size + parts - 1) / parts;
    for (int64_t i = begin; i < end; ++i) matrix.Set(part * size + i, 1.0 / static_cast<double>(end - begin));
  }
  return matrix;
}

/// The largest elements of the parts that an axis is cut into, one by one.
std::string LargestOfParts(OnnxExportCall& call, const std::string& x, int64_t axis, int64_t size, int64_t parts) {
  OnnxNames largest;
  for (int64_t part = 0; part < parts; ++part) {
    const V begin{part * size / parts};
    const V end{((part + 1) * size + parts - 1) / parts};
    const std::string slice = call.Node("Slice", {x, call.Ints(begin), call.Ints(end), call.Ints({axis})});
    largest.push_back(call.Node("ReduceMax", {slice, call.Ints({axis})}, {{"keepdims", 1}}));
  }
  return call.Node("Concat", largest, {{"axis", axis}});
}

/// Parts of equal size are windows; means of others are rows of a matrix, their largest elements are found one by one.
OnnxExportRow AdaptivePool(bool is_max) {
  return [is_max](OnnxExportCall& call) -> OnnxNames {
    call.Require("layout", "NCHW");
    const Shape shape = call.ShapeOf(0);
    const V size = PerDimension(call.attrs().Ints("output_size"), 2);
    if (shape[2] % size[0] == 0 && shape[3] % size[1] == 0) {
      const V window{shape[2] / size[0], shape[3] / size[1]};
      return {call.Node(is_max ? "MaxPool" : "AveragePool", {call.Arg(0)},
                        {{"kernel_shape", window}, {"strides", window}})};
    }
    if (is_max) {
      return {LargestOfParts(call, LargestOfParts(call, call.Arg(0), 2, shape[2], size[0]), 3, shape[3], size[1])};
    }
    const DataType dtype = call.DTypeOf(0);
    const std::string rows = call.Constant(MeansOfParts(shape[2], size[0], dtype));
    const std::string columns = call.Transpose(call.Constant(MeansOfParts(shape[3], size[1], dtype)), {1, 0});
    return {call.Node("MatMul", {call.Node("MatMul", {rows, call.Arg(0)}), columns})};
  };
}

OnnxNames Pad(OnnxExportCall& call) {
  V pads;
  for (size_t side = 0; side < 2; ++side) {
    for (const AttrValue& width : *call.attrs().Get("pad_width").as_list()) {
      pads.push_back(*width.as_list()->at(side).as_int());
    }
  }
  const std::string& mode = call.attrs().String("pad_mode");
  return {call.Node("Pad", {call.Arg(0), call.Ints(pads), mode == "constant" ? call.Arg(1) : ""}, {{"mode", mode}})};
}

OnnxNames BiasAdd(OnnxExportCall& call) {
  const int rank = call.Rank(0);
  return {call.Node("Add", {call.Arg(0), call.AlongAxis(1, call.Axis("axis", rank), rank)})};
}

OnnxNames Prelu(OnnxExportCall& call) {
  const int rank = call.Rank(0);
  return {call.Node("PRelu", {call.Arg(0), call.AlongAxis(1, call.Axis("axis", rank), rank)})};
}

/// Identity, and a mask that keeps everything: executables do not train.
OnnxNames Dropout(OnnxExportCall& call) {
  const std::string one = call.Scalar(1, call.ResultType(1).dtype());
  return {call.Node("Identity", {call.Arg(0)}), call.Node("Expand", {one, call.Node("Shape", {call.Arg(0)})})};
}

OnnxNames DepthToSpace(OnnxExportCall& call) {
  call.Require("layout", "NCHW");
  return {call.Node("DepthToSpace", {call.Arg(0)},
                    {{"blocksize", call.attrs().Int("block_size")}, {"mode", call.attrs().String("mode")}})};
}

OnnxNames SpaceToDepth(OnnxExportCall& call) {
  call.Require("layout", "NCHW");
  return {call.Node("SpaceToDepth", {call.Arg(0)}, {{"blocksize", call.attrs().Int("block_size")}})};
}

}  // namespace

void AddNeuralRows(OnnxExportRows& rows) {
  for (int rank = 1; rank <= 3; ++rank) {
    rows[fmt::format("nn.max_pool{}d", rank)] = MaxPool(rank);
    rows[fmt::format("nn.max_pool{}d_indices", rank)] = MaxPoolIndices(rank);
    rows[fmt::format("nn.avg_pool{}d", rank)] = AveragePool(rank);
    rows[fmt::format("nn.global_max_pool{}d", rank)] = GlobalPool("GlobalMaxPool", rank);
    rows[fmt::format("nn.global_avg_pool{}d", rank)] = GlobalPool("GlobalAveragePool", rank);
  }
  rows["nn.adaptive_max_pool2d"] = AdaptivePool(/*is_max=*/true);
  rows["nn.adaptive_avg_pool2d"] = AdaptivePool(/*is_max=*/false);
  rows["nn.pad"] = Pad;
  rows["nn.bias_add"] = BiasAdd;
  rows["nn.prelu"] = Prelu;
  rows["nn.dropout"] = Dropout;
  rows["nn.depth_to_space"] = DepthToSpace;
  rows["nn.space_to_depth"] = SpaceToDepth;
}

}  // namespace collage
