// vision.cc: regions, boxes, sampling grids and patches of ONNX.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

Results ConvertRoiAlign(NodeContext& node) {
  const Expr data = node.Input(0);
  const DataType dtype = node.TypeOf(data).dtype();
  const Expr rois = node.Input(1);
  const Expr batches = node.Reshape(node.Cast(node.Input(2), dtype), {node.SizesOf(rois).at(0), 1});
  const std::string mode = node.String("mode", "avg");
  const std::string coordinates =
      node.opset() < 16 ? "output_half_pixel" : node.String("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") node.Invalid("there is no mode '" + mode + "'");
  return {node.Op("vision.roi_align", {data, Concatenate(node, {batches, node.Cast(rois, dtype)}, 1)},
                  {{"pooled_size", V{node.Int("output_height", 1), node.Int("output_width", 1)}},
                   {"spatial_scale", node.Float("spatial_scale", 1)},
                   {"sample_ratio", node.Int("sampling_ratio", 0)},
                   {"mode", mode},
                   {"aligned", coordinates == "half_pixel"}})};
}

Results ConvertMaxRoiPool(NodeContext& node) {
  return {node.Op("vision.roi_pool", {node.Input(0), node.Input(1)},
                  {{"pooled_size", node.Ints("pooled_shape", {})}, {"spatial_scale", node.Float("spatial_scale", 1)}})};
}

Results ConvertNonMaxSuppression(NodeContext& node) {
  const Sizes shape = node.SizesOf(node.Input(0));
  if (shape[2].is_known() && shape[2].known() != 4)
    node.Invalid(fmt::format("boxes of {} numbers, 4 are wanted", shape[2].known()));
  Expr boxes = node.WithSizes(node.Input(0), {shape[0], shape[1], 4});
  if (node.Int("center_point_box", 0) != 0) {
    // [x, y, width, height] → corners.
    const Expr centre = Slice(node, boxes, 2, 0, 2);
    const Expr half = Scaled(node, Slice(node, boxes, 2, 2, 4), 0.5);
    boxes = Concatenate(node, {node.Op("subtract", {centre, half}), node.Op("add", {centre, half})}, 2);
  }
  const auto scalar = [&](size_t i, double fallback, DataType dtype) -> Expr {
    return node.HasInput(i) ? node.Reshape(node.Input(i), {}) : Expr(MakeScalar(fallback, dtype));
  };
  const Expr call = node.Op("vision.all_class_non_max_suppression",
                            {boxes, node.Input(1), scalar(2, 0, kInt64), scalar(3, 0, kFloat32),
                             scalar(4, -std::numeric_limits<double>::infinity(), kFloat32)});
  // The rows that count.
  const Expr rows = node.Field(call, 0);
  const SymbolicSize most = node.SizesOf(rows)[0];
  const Expr numbers = node.Op("arange", {MakeScalar(0, kInt64), node.ComputeScalar(most), MakeScalar(1, kInt64)});
  const Expr counts = node.Op("less", {node.WithSizes(numbers, {most}), node.Field(call, 1)});
  const Expr places = node.Op("squeeze", {node.Op("argwhere", {counts})}, {{"axis", V{1}}});
  return {node.Op("take", {rows, places}, {{"axis", 0}})};
}

Results ConvertGridSample(NodeContext& node) {
  const int rank = node.Rank(node.Input(0));
  std::string mode = node.String("mode", "linear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  // Coordinates are the last axis in ONNX, the second in Relay.
  V axes{0, rank - 1};
  for (int i = 1; i + 1 < rank; ++i) axes.push_back(i);
  const Expr grid = node.Cast(node.Input(1), node.TypeOf(node.Input(0)).dtype());
  return {node.Op("image.grid_sample", {node.Input(0), Transpose(node, grid, axes)},
                  {{"method", mode},
                   {"padding_mode", node.String("padding_mode", "zeros")},
                   {"align_corners", node.Int("align_corners", 0) != 0},
                   {"layout", rank == 5 ? "NCDHW" : "NCHW"}})};
}

/// Points of a regular grid over [-1, 1], transformed by a matrix per batch.
Results ConvertAffineGrid(NodeContext& node) {
  const Expr theta = node.Input(0);
  const V size = node.ConstantInts(1);
  if (size.size() != 4 && size.size() != 5)
    node.Invalid(fmt::format("size has {} elements, 4 or 5 are wanted", size.size()));
  const bool align = node.Int("align_corners", 0) != 0;
  const Shape spatial(size.begin() + 2, size.end());
  const auto rank = static_cast<int64_t>(spatial.size());
  if (std::ranges::any_of(size, [](int64_t length) { return length < 1; }))
    node.Invalid("cannot make a grid of size " + ToString(size));
  // Homogeneous coordinates, x first: [points, rank + 1].
  Shape whole = spatial;
  whole.push_back(rank + 1);
  const Tensor zeros = ZerosOf(node, whole, node.TypeOf(theta).dtype());
  const int64_t points = NumElements(spatial);
  const Tensor grid = zeros.Reshaped({points, rank + 1});
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (int64_t d = rank; d-- > 0;) {
      const auto length = static_cast<double>(spatial[static_cast<size_t>(d)]);
      const auto at = static_cast<double>(rest % spatial[static_cast<size_t>(d)]);
      rest /= spatial[static_cast<size_t>(d)];
      const double x = align ? (length == 1 ? -1 : -1 + 2 * at / (length - 1)) : (2 * at + 1) / length - 1;
      grid.Set(p * (rank + 1) + rank - 1 - d, x);
    }
    grid.Set(p * (rank + 1) + rank, 1);
  }
  const Expr turned = Transpose(node, theta, {0, 2, 1});  // [N, rank + 1, rank]
  const Expr product = MultiplyMatrices(node, MakeConstant(grid.Reshaped({1, points, rank + 1})), turned);
  Shape result{size[0]};
  result.insert(result.end(), spatial.begin(), spatial.end());
  result.push_back(rank);
  return {node.Reshape(product, result)};
}

Results ConvertDeformConv(NodeContext& node) {
  const Shape weight = node.ShapeOf(node.Input(1));
  if (weight.size() != 4)
    node.Unsupported(fmt::format("deformable convolution with a weight of rank {}", weight.size()));
  std::vector<Expr> args{node.Input(0), node.Input(2), node.Input(1)};
  if (node.HasInput(4)) args.push_back(node.Input(4));
  Expr result = node.Op("nn.deformable_conv2d", std::move(args),
                        {{"strides", node.Ints("strides", {1, 1})},
                         {"padding", node.Ints("pads", {0, 0, 0, 0})},
                         {"dilation", node.Ints("dilations", {1, 1})},
                         {"deformable_groups", node.Int("offset_group", 1)},
                         {"groups", node.Int("group", 1)},
                         {"channels", weight[0]},
                         {"kernel_size", V{weight[2], weight[3]}}});
  if (node.HasInput(3)) result = node.Op("add", {result, node.Reshape(node.Input(3), {weight[0], 1, 1})});
  return {result};
}

/// Columns of patches summed into an image: a transposed convolution whose weight puts each row of a patch in its
/// place.
Results ConvertCol2Im(NodeContext& node) {
  const Expr data = node.Input(0);
  const Shape shape = node.ShapeOf(data);
  const V image = node.ConstantInts(1);
  const V block = node.ConstantInts(2);
  const size_t rank = image.size();
  if (block.size() != rank) node.Invalid(fmt::format("patches have {} dimensions, the image {}", block.size(), rank));
  if (rank < 1 || rank > 3) node.Unsupported(fmt::format("patches of {} dimensions", rank));
  const V strides = node.PositiveInts("strides", rank);
  const V dilations = node.PositiveInts("dilations", rank);
  const V pads = node.Pads("pads", 2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    if (image[d] < 1 || block[d] < 1 || std::max(image[d], block[d]) > INT32_MAX)
      node.Invalid(fmt::format("patches of {} do not fit an image of {}", ToString(block), ToString(image)));
  }
  const std::optional<size_t> taps_if_any = CheckedBytes(block, kInt8);
  if (!taps_if_any) node.Invalid(fmt::format("patches of {} are too large for any memory", ToString(block)));
  const auto taps = static_cast<int64_t>(*taps_if_any);
  const int64_t channels = shape[1] / taps;
  Shape columns{shape[0], shape[1]};
  V extra;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t room = image[d] + pads[d] + pads[d + rank] - (block[d] - 1) * dilations[d] - 1;
    if (room < 0)
      node.Invalid(fmt::format("patches of {} do not fit an image of {}", ToString(block), ToString(image)));
    columns.push_back(room / strides[d] + 1);
    extra.push_back(room % strides[d]);
  }
  const std::optional<size_t> count = CheckedBytes(columns, kInt8);
  if (!count || static_cast<int64_t>(*count) != NumElements(shape) || shape[1] % taps != 0)
    node.Invalid(fmt::format("columns {} do not fit patches of {} in an image of {}", ToString(shape), ToString(block),
                             ToString(image)));
  Shape weight_shape{shape[1], 1};
  weight_shape.insert(weight_shape.end(), block.begin(), block.end());
  const Tensor weight = ZerosOf(node, weight_shape, node.TypeOf(data).dtype());
  for (int64_t i = 0; i < shape[1]; ++i) weight.Set(i * taps + i % taps, 1);
  return {node.Op(fmt::format("nn.conv{}d_transpose", rank), {node.Reshape(data, columns), MakeConstant(weight)},
                  {{"strides", strides},
                   {"padding", pads},
                   {"dilation", dilations},
                   {"groups", channels},
                   {"channels", channels},
                   {"kernel_size", block},
                   {"output_padding", extra}})};
}

/// Crops or pads with zeros around the centre of some axes.
Results ConvertCenterCropPad(NodeContext& node) {
  Expr x = node.Input(0);
  const Shape shape = node.ShapeOf(x);
  V axes = node.Ints("axes", {});
  if (axes.empty()) {
    for (int i = 0; i < node.Rank(x); ++i) axes.push_back(i);
  }
  const V wanted = node.ConstantInts(1);
  if (wanted.size() != axes.size()) node.Invalid(fmt::format("{} sizes for {} axes", wanted.size(), axes.size()));
  std::vector<V> widths(shape.size(), V{0, 0});
  bool pads = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = NormalAxis(node, axes[i], static_cast<int>(shape.size()));
    const int64_t length = shape[static_cast<size_t>(axis)];
    if (wanted[i] < 0) node.Invalid("cannot crop or pad to " + ToString(wanted));
    if (wanted[i] < length) {
      const int64_t begin = (length - wanted[i]) / 2;
      x = Slice(node, x, axis, begin, begin + wanted[i]);
    } else if (wanted[i] > length) {
      const int64_t before = (wanted[i] - length) / 2;
      widths[static_cast<size_t>(axis)] = {before, wanted[i] - length - before};
      pads = true;
    }
  }
  if (pads)
    x = node.Op("nn.pad", {x, node.ScalarLike(0, x)}, {{"pad_width", AttrValue::List(widths.begin(), widths.end())}});
  return {x};
}

}  // namespace

void AddVisionConverters(OnnxConverters& converters) {
  converters.Add("RoiAlign", ConvertRoiAlign, "X: float[4], rois: same[2], batch_indices: int[1] -> Y");
  converters.Add("MaxRoiPool", ConvertMaxRoiPool, "X: float[4], rois: same[2] -> Y");
  converters.Add("NonMaxSuppression", ConvertNonMaxSuppression,
                 "boxes: float[3], scores: same[3], max_output_boxes_per_class?: int[0..1], iou_threshold?: "
                 "same[0..1], score_threshold?: same[0..1] -> selected_indices");
  converters.Add("GridSample", ConvertGridSample, "X: [3..], grid: float[3..] -> Y");
  converters.Add("AffineGrid", ConvertAffineGrid, "theta: float[3], size: int[1] -> grid");
  converters.Add("DeformConv", ConvertDeformConv,
                 "X: float[3..], W: same[3..], offset: same[3..], B?: same[1], mask?: same[3..] -> Y");
  converters.Add("Col2Im", ConvertCol2Im, "input: [3], image_shape: int[1], block_shape: int[1] -> output");
  converters.Add("CenterCropPad", ConvertCenterCropPad, "input_data, shape: int[1] -> output_data");
}

}  // namespace collage
