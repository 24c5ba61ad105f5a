// neural.cc: convolutions and pooling of ONNX.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Window attributes that convolutions and pools share, auto_pad resolved.
struct Window {
  V kernel, strides, dilations, padding;
};

// Sizes of data that windows move over; products with steps fit 63 bits.
constexpr int64_t kLargestWindow = int64_t{1} << 31;

/// If a run decides how far auto_pad pads, pads `x` with `outside` before the window moves over it; throws kUnsupported
/// without `outside`.
Window ReadWindow(NodeContext& node, Expr& x, V kernel, std::optional<double> outside = {}) {
  const Sizes data = node.SizesOf(x);
  const size_t rank = data.size() - 2;
  Window window;
  window.kernel = std::move(kernel);
  if (window.kernel.size() != rank)
    node.Invalid(fmt::format("a kernel of rank {} for data of rank {}", window.kernel.size(), rank + 2));
  for (size_t i = 0; i < rank; ++i) {
    const bool is_large = data[i + 2].is_known() && data[i + 2].known() > int64_t{1} << 60;
    if (window.kernel[i] < 1 || window.kernel[i] > kLargestWindow || is_large)
      node.Invalid(fmt::format("a kernel of {} for data of {}", ToString(window.kernel), data.ToString()));
  }
  window.strides = node.PositiveInts("strides", rank);
  window.dilations = node.PositiveInts("dilations", rank);
  window.padding = node.Pads("pads", 2 * rank);
  const std::string mode = node.OneOf("auto_pad", "NOTSET", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  if (mode == "VALID") window.padding.assign(2 * rank, 0);
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    Sizes before(rank + 2, 0), after(rank + 2, 0);
    for (size_t i = 0; i < rank; ++i) {
      const SymbolicSize out = SymbolicSize::CeilDivide(data[i + 2], window.strides[i]);
      const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
      const SymbolicSize uncovered = (out - 1) * window.strides[i] + extent - data[i + 2];
      const SymbolicSize total = SymbolicSize::Maximum(uncovered, 0);
      if (!outside) node.Known(total, "the padding of auto_pad " + mode);
      const SymbolicSize small = SymbolicSize::FloorDivide(total, 2);
      before[i + 2] = mode == "SAME_UPPER" ? small : total - small;
      after[i + 2] = total - before[i + 2];
    }
    const bool is_known = before.is_known() && after.is_known();
    for (size_t i = 0; i < rank; ++i) {
      window.padding[i] = is_known ? before[i + 2].known() : 0;
      window.padding[i + rank] = is_known ? after[i + 2].known() : 0;
    }
    if (!is_known) x = PadBy(node, x, before, after, node.ScalarLike(*outside, x), "constant");
  }
  return window;
}

/// A vector [C] as [C, 1, …] so that it broadcasts over the spatial dimensions.
Expr PerChannel(NodeContext& node, const Expr& bias, size_t spatial_rank) {
  Shape shape(spatial_rank + 1, 1);
  shape[0] = NumElements(node.ShapeOf(bias));
  return node.Reshape(bias, shape);
}

Results ConvertConv(NodeContext& node) {
  Expr result = Convolve(node, node.Input(0), node.Input(1));
  if (node.HasInput(2))
    result = node.Op("add", {result, PerChannel(node, node.Input(2), static_cast<size_t>(node.Rank(result)) - 2)});
  return {result};
}

Results ConvertConvTranspose(NodeContext& node) {
  const Expr data = node.Input(0);
  const Expr weight = node.Input(1);
  const Shape weight_shape = node.ShapeOf(weight);
  const Sizes data_shape = node.SizesOf(data);
  const size_t rank = weight_shape.size() - 2;
  if (data_shape.size() != weight_shape.size())
    node.Invalid(fmt::format("a kernel of rank {} for data of rank {}", rank, data_shape.size()));
  Window window{V(weight_shape.begin() + 2, weight_shape.end()), node.PositiveInts("strides", rank),
                node.PositiveInts("dilations", rank), node.Pads("pads", 2 * rank)};
  V extra = node.Pads("output_padding", rank);
  const std::string mode = node.OneOf("auto_pad", "NOTSET", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  Sizes wanted(node.Ints("output_shape", {}));
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != rank)
    node.Invalid(fmt::format("an output_shape of {} dimensions for {}", wanted.size(), rank));
  for (size_t i = 0; i < rank; ++i) {
    const bool is_large = window.kernel[i] > kLargestWindow ||
                          (data_shape[i + 2].is_known() && data_shape[i + 2].known() > kLargestWindow);
    if (is_large || (!wanted.empty() && (wanted[i].known() < 1 || wanted[i].known() > kLargestWindow)))
      node.Invalid(fmt::format("cannot pad {} to {}", data_shape.ToString(), wanted.ToString()));
  }
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; wanted.size() < rank; ++i) wanted.push_back(data_shape[i + 2] * window.strides[i]);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const SymbolicSize surplus = (data_shape[i + 2] - 1) * window.strides[i] + extra[i] +
                                 (window.kernel[i] - 1) * window.dilations[i] + 1 - wanted[i];
    const int64_t total = node.Known(surplus, "the padding that gives the shape asked for");
    const int64_t small = std::max<int64_t>(total, 0) / 2;
    window.padding[i] = mode == "SAME_UPPER" ? small : std::max<int64_t>(total, 0) - small;
    window.padding[i + rank] = std::max<int64_t>(total, 0) - window.padding[i];
    if (total < 0) extra[i] -= total;
  }
  const int64_t groups = node.PositiveInt("group", 1);
  if (weight_shape[1] > kLargestWindow) node.Invalid(fmt::format("{} channels", weight_shape[1]));
  Expr result = node.Op(fmt::format("nn.conv{}d_transpose", rank), {data, weight},
                        {{"strides", window.strides},
                         {"padding", window.padding},
                         {"dilation", window.dilations},
                         {"groups", groups},
                         {"channels", weight_shape[1] * groups},
                         {"kernel_size", window.kernel},
                         {"output_padding", extra}});
  if (node.HasInput(2)) result = node.Op("add", {result, PerChannel(node, node.Input(2), rank)});
  return {result};
}

size_t SpatialRank(NodeContext& node, const Expr& data) { return static_cast<size_t>(node.Rank(data) - 2); }

Attrs PoolAttrs(NodeContext& node, const Window& window) {
  return {{"pool_size", window.kernel},
          {"strides", window.strides},
          {"dilation", window.dilations},
          {"padding", window.padding},
          {"ceil_mode", node.Int("ceil_mode", 0) != 0}};
}

Results ConvertMaxPool(NodeContext& node) {
  Expr data = node.Input(0);
  const size_t rank = SpatialRank(node, data);
  // Indices count in data without padding.
  const bool may_pad = node.TypeOf(data).dtype().is_floating() && !node.HasOutput(1);
  const auto outside = may_pad ? std::optional(-std::numeric_limits<double>::infinity()) : std::nullopt;
  const Attrs attrs = PoolAttrs(node, ReadWindow(node, data, node.Ints("kernel_shape", {}), outside));
  Results results{node.Op(fmt::format("nn.max_pool{}d", rank), {data}, attrs)};
  if (node.HasOutput(1)) {
    Attrs index_attrs = attrs;
    index_attrs.Set("column_major", node.Int("storage_order", 0) != 0);
    results.push_back(node.Op(fmt::format("nn.max_pool{}d_indices", rank), {data}, index_attrs));
  }
  return results;
}

Results ConvertAveragePool(NodeContext& node) {
  Expr data = node.Input(0);
  const size_t rank = SpatialRank(node, data);
  const bool counts_padding = node.Int("count_include_pad", 0) != 0;
  const auto outside = counts_padding ? std::optional(0.0) : std::nullopt;
  Attrs attrs = PoolAttrs(node, ReadWindow(node, data, node.Ints("kernel_shape", {}), outside));
  attrs.Set("count_include_pad", counts_padding);
  return {node.Op(fmt::format("nn.avg_pool{}d", rank), {data}, std::move(attrs))};
}

/// |x|^p.
Expr Powers(NodeContext& node, const Expr& x, int64_t p) {
  if (p == 2) return node.Op("multiply", {x, x});
  const Expr magnitude = node.Op("abs", {x});
  return p == 1 ? magnitude : node.Op("power", {magnitude, node.ScalarLike(static_cast<double>(p), x)});
}

/// x^(1/p).
Expr Root(NodeContext& node, const Expr& x, int64_t p) {
  if (p == 1) return x;
  return p == 2 ? node.Op("sqrt", {x}) : node.Op("power", {x, node.ScalarLike(1.0 / static_cast<double>(p), x)});
}

/// (sum of |x|^p over the window)^(1/p): means over windows of known size are sums.
Results ConvertLpPool(NodeContext& node) {
  Expr data = node.Input(0);
  const size_t rank = SpatialRank(node, data);
  const int64_t p = node.PositiveInt("p", 2);
  const Sizes shape = node.SizesOf(data);
  Window window = ReadWindow(node, data, node.Ints("kernel_shape", {}));
  // Padding counts as zeros; a partial window at the end is padded to a whole one.
  std::vector<V> widths(rank + 2, V{0, 0});
  double taps = 1;
  for (size_t d = 0; d < rank; ++d) {
    taps *= static_cast<double>(window.kernel[d]);
    const int64_t extent = (window.kernel[d] - 1) * window.dilations[d] + 1;
    widths[d + 2] = {window.padding[d], window.padding[d + rank]};
    if (node.Int("ceil_mode", 0) == 0) continue;
    const SymbolicSize sum = shape[d + 2] + (window.padding[d] + window.padding[d + rank] - extent);
    const int64_t room = node.Known(sum, "the last window that ceil_mode wants");
    if (room % window.strides[d] != 0) widths[d + 2][1] += window.strides[d] - room % window.strides[d];
  }
  const Expr powers = node.Op("nn.pad", {Powers(node, data, p), node.ScalarLike(0, data)},
                              {{"pad_width", AttrValue::List(widths.begin(), widths.end())}});
  const Expr means =
      node.Op(fmt::format("nn.avg_pool{}d", rank), {powers},
              {{"pool_size", window.kernel}, {"strides", window.strides}, {"dilation", window.dilations}});
  return {Root(node, Scaled(node, means, taps), p)};
}

Results ConvertGlobalLpPool(NodeContext& node) {
  const int64_t p = node.PositiveInt("p", 2);
  V axes;
  for (int i = 2; i < node.Rank(node.Input(0)); ++i) axes.push_back(i);
  const Expr sum = node.Op("sum", {Powers(node, node.Input(0), p)}, {{"axis", axes}, {"keepdims", true}});
  return {Root(node, sum, p)};
}

/// Elements written where the maximum came from, zeros elsewhere.
Results ConvertMaxUnpool(NodeContext& node) {
  const Expr data = node.Input(0);
  const Shape shape = node.ShapeOf(data);
  const size_t rank = SpatialRank(node, data);
  const V kernel = node.PositiveInts("kernel_shape", rank);
  const V strides = node.PositiveInts("strides", rank);
  const V pads = node.Pads("pads", 2 * rank);
  // Indices count in the shape that was pooled, which may be smaller than the one asked for.
  Shape pooled{shape[0], shape[1]};
  for (size_t d = 0; d < rank; ++d) {
    if (shape[d + 2] > kLargestWindow)
      node.Invalid(fmt::format("cannot unpool {}: the largest size is {}", ToString(shape), kLargestWindow));
    pooled.push_back((shape[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[d + rank]);
  }
  if (!CheckedBytes(pooled, kFloat64))
    node.Invalid(fmt::format("cannot unpool {} to {}: too large for any memory", ToString(shape), ToString(pooled)));
  Shape result = pooled;
  if (node.HasInput(2)) result = node.ConstantInts(2);
  if (result.size() != shape.size())
    node.Invalid(fmt::format("output_shape {} for data of rank {}", ToString(result), shape.size()));
  const int64_t count = NumElements(shape);
  const Expr zeros = node.Op("zeros", {}, {{"shape", V{NumElements(pooled)}}, {"dtype", node.TypeOf(data).dtype()}});
  const Expr flat =
      node.Op("scatter_elements", {zeros, node.Reshape(node.Input(1), {count}), node.Reshape(data, {count})});
  Expr x = node.Reshape(flat, pooled);
  if (result == pooled) return {x};
  std::vector<V> widths;
  for (size_t d = 0; d < result.size(); ++d) {
    if (result[d] < pooled[d])
      node.Invalid(
          fmt::format("output_shape {} is smaller than {}, which was pooled", ToString(result), ToString(pooled)));
    widths.push_back({0, result[d] - pooled[d]});
  }
  return {
      node.Op("nn.pad", {x, node.ScalarLike(0, x)}, {{"pad_width", AttrValue::List(widths.begin(), widths.end())}})};
}

OnnxConverter GlobalPool(const char* kind) {
  return [kind](NodeContext& node) -> Results {
    return {node.Op(fmt::format("nn.global_{}_pool{}d", kind, SpatialRank(node, node.Input(0))), {node.Input(0)})};
  };
}

Results ConvertLeakyRelu(NodeContext& node) {
  return {node.Op("nn.leaky_relu", {node.Input(0)}, {{"alpha", node.Float("alpha", 0.01)}})};
}

Results ConvertPRelu(NodeContext& node) {
  const Expr x = node.Input(0);
  const Expr zero = node.ScalarLike(0, x);
  const Expr below = node.Op("multiply", {node.Op("minimum", {x, zero}), node.Input(1)});
  return {node.Op("add", {node.Op("nn.relu", {x}), below})};
}

}  // namespace

Expr Convolve(NodeContext& node, const Expr& data, const Expr& weight) {
  const Shape weight_shape = node.ShapeOf(weight);
  if (weight_shape.size() < 3 || weight_shape.size() > 5) {
    node.Unsupported(fmt::format("convolution with a weight of rank {}", weight_shape.size()));
  }
  const size_t rank = weight_shape.size() - 2;
  Expr padded = data;
  const Window window = ReadWindow(node, padded, V(weight_shape.begin() + 2, weight_shape.end()), /*outside=*/0);
  return node.Op(fmt::format("nn.conv{}d", rank), {padded, weight},
                 {{"strides", window.strides},
                  {"padding", window.padding},
                  {"dilation", window.dilations},
                  {"groups", node.PositiveInt("group", 1)},
                  {"channels", weight_shape[0]},
                  {"kernel_size", window.kernel}});
}

void AddNeuralConverters(OnnxConverters& converters) {
  converters.Add("Conv", ConvertConv, "X: float[3..5+], W: same[3..5+], B?: same[1] -> Y");
  converters.Add("ConvTranspose", ConvertConvTranspose, "X: float[3..5+], W: same[3..5+], B?: same[1] -> Y");
  converters.Add("MaxPool", ConvertMaxPool, "X: number[3..5+] -> Y, Indices?");
  converters.Add("MaxUnpool", ConvertMaxUnpool, "X: float[3..5+], I: int[3..5+], output_shape?: int[1] -> output");
  converters.Add("AveragePool", ConvertAveragePool, "X: float[3..5+] -> Y");
  converters.Add("LpPool", ConvertLpPool, "X: float[3..5+] -> Y");
  converters.Add("GlobalLpPool", ConvertGlobalLpPool, "X: float[2..] -> Y");
  converters.Add("GlobalAveragePool", GlobalPool("avg"), "X: float[3..5+] -> Y");
  converters.Add("GlobalMaxPool", GlobalPool("max"), "X: float[3..5+] -> Y");
  converters.Add("LeakyRelu", ConvertLeakyRelu, "X: float -> Y");
  converters.Add("PRelu", ConvertPRelu, "X: number, slope: same -> Y");
}

}  // namespace collage
