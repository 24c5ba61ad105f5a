// neural.cc: convolutions and pooling of ONNX.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Window attributes that convolutions and pools share, auto_pad resolved.
struct Window {
  V kernel, strides, dilations, padding;
};

Window ReadWindow(NodeContext& node, const Shape& data, V kernel) {
  const size_t rank = data.size() - 2;
  Window window;
  window.kernel = std::move(kernel);
  if (window.kernel.size() != rank)
    node.Invalid(fmt::format("a kernel of rank {} for data of rank {}", window.kernel.size(), rank + 2));
  window.strides = node.Ints("strides", V(rank, 1));
  window.dilations = node.Ints("dilations", V(rank, 1));
  window.padding = node.Ints("pads", V(2 * rank, 0));
  const std::string mode = node.String("auto_pad", "NOTSET");
  if (mode == "VALID") window.padding.assign(2 * rank, 0);
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; i < rank; ++i) {
      const int64_t out = (data[i + 2] + window.strides[i] - 1) / window.strides[i];
      const int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
      const int64_t total = std::max<int64_t>(0, (out - 1) * window.strides[i] + extent - data[i + 2]);
      const int64_t small = total / 2;
      window.padding[i] = mode == "SAME_UPPER" ? small : total - small;
      window.padding[i + rank] = total - window.padding[i];
    }
  }
  if (window.strides.size() != rank || window.dilations.size() != rank || window.padding.size() != 2 * rank) {
    node.Invalid("strides, dilations or pads do not fit the data's rank");
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
    result = node.Op("add", {result, PerChannel(node, node.Input(2), node.ShapeOf(result).size() - 2)});
  return {result};
}

Results ConvertConvTranspose(NodeContext& node) {
  const Expr data = node.Input(0);
  const Expr weight = node.Input(1);
  const Shape weight_shape = node.ShapeOf(weight);
  const Shape data_shape = node.ShapeOf(data);
  const size_t rank = weight_shape.size() - 2;
  if (rank < 1 || rank > 3) node.Unsupported(fmt::format("transposed convolution over {} dimensions", rank));
  Window window{V(weight_shape.begin() + 2, weight_shape.end()), node.Ints("strides", V(rank, 1)),
                node.Ints("dilations", V(rank, 1)), node.Ints("pads", V(2 * rank, 0))};
  V extra = node.Ints("output_padding", V(rank, 0));
  const std::string mode = node.String("auto_pad", "NOTSET");
  V wanted = node.Ints("output_shape", {});
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; wanted.size() < rank; ++i) wanted.push_back(data_shape[i + 2] * window.strides[i]);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int64_t total = (data_shape[i + 2] - 1) * window.strides[i] + extra[i] +
                          (window.kernel[i] - 1) * window.dilations[i] + 1 - wanted[i];
    const int64_t small = std::max<int64_t>(total, 0) / 2;
    window.padding[i] = mode == "SAME_UPPER" ? small : std::max<int64_t>(total, 0) - small;
    window.padding[i + rank] = std::max<int64_t>(total, 0) - window.padding[i];
    if (total < 0) extra[i] -= total;
  }
  const int64_t groups = node.Int("group", 1);
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

size_t SpatialRank(NodeContext& node, const Expr& data) {
  const int rank = node.Rank(data) - 2;
  if (rank < 1 || rank > 3) node.Unsupported(fmt::format("pooling over {} dimensions", rank));
  return static_cast<size_t>(rank);
}

Attrs PoolAttrs(NodeContext& node, const Window& window) {
  return {{"pool_size", window.kernel},
          {"strides", window.strides},
          {"dilation", window.dilations},
          {"padding", window.padding},
          {"ceil_mode", node.Int("ceil_mode", 0) != 0}};
}

Results ConvertMaxPool(NodeContext& node) {
  const Expr data = node.Input(0);
  const size_t rank = SpatialRank(node, data);
  const Attrs attrs = PoolAttrs(node, ReadWindow(node, node.ShapeOf(data), node.Ints("kernel_shape", {})));
  Results results{node.Op(fmt::format("nn.max_pool{}d", rank), {data}, attrs)};
  if (node.HasOutput(1)) {
    Attrs index_attrs = attrs;
    index_attrs.Set("column_major", node.Int("storage_order", 0) != 0);
    results.push_back(node.Op(fmt::format("nn.max_pool{}d_indices", rank), {data}, index_attrs));
  }
  return results;
}

Results ConvertAveragePool(NodeContext& node) {
  const Expr data = node.Input(0);
  const size_t rank = SpatialRank(node, data);
  Attrs attrs = PoolAttrs(node, ReadWindow(node, node.ShapeOf(data), node.Ints("kernel_shape", {})));
  attrs.Set("count_include_pad", node.Int("count_include_pad", 0) != 0);
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
  const Expr data = node.Input(0);
  const size_t rank = SpatialRank(node, data);
  const int64_t p = node.Int("p", 2);
  const Shape shape = node.ShapeOf(data);
  Window window = ReadWindow(node, shape, node.Ints("kernel_shape", {}));
  // Padding counts as zeros; a partial window at the end is padded to a whole one.
  std::vector<V> widths(rank + 2, V{0, 0});
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = (window.kernel[d] - 1) * window.dilations[d] + 1;
    widths[d + 2] = {window.padding[d], window.padding[d + rank]};
    const int64_t room = shape[d + 2] + window.padding[d] + window.padding[d + rank] - extent;
    if (node.Int("ceil_mode", 0) != 0 && room % window.strides[d] != 0)
      widths[d + 2][1] += window.strides[d] - room % window.strides[d];
  }
  const Expr powers = node.Op("nn.pad", {Powers(node, data, p), node.ScalarLike(0, data)},
                              {{"pad_width", AttrValue::List(widths.begin(), widths.end())}});
  const Expr means =
      node.Op(fmt::format("nn.avg_pool{}d", rank), {powers},
              {{"pool_size", window.kernel}, {"strides", window.strides}, {"dilation", window.dilations}});
  return {Root(node, Scaled(node, means, static_cast<double>(NumElements(window.kernel))), p)};
}

Results ConvertGlobalLpPool(NodeContext& node) {
  const int64_t p = node.Int("p", 2);
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
  const V kernel = node.Ints("kernel_shape", {});
  const V strides = node.Ints("strides", V(rank, 1));
  const V pads = node.Ints("pads", V(2 * rank, 0));
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank)
    node.Invalid("strides or pads do not fit the kernel");
  // Indices count in the shape that was pooled, which may be smaller than the one asked for.
  Shape pooled{shape[0], shape[1]};
  for (size_t d = 0; d < rank; ++d)
    pooled.push_back((shape[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[d + rank]);
  Shape result = pooled;
  if (node.HasInput(2)) result = node.ConstantInts(2);
  if (result.size() != shape.size()) node.Invalid("output_shape does not fit the data's rank");
  const int64_t count = NumElements(shape);
  const Expr zeros = node.Op("zeros", {}, {{"shape", V{NumElements(pooled)}}, {"dtype", node.TypeOf(data).dtype()}});
  const Expr flat =
      node.Op("scatter_elements", {zeros, node.Reshape(node.Input(1), {count}), node.Reshape(data, {count})});
  Expr x = node.Reshape(flat, pooled);
  if (result == pooled) return {x};
  std::vector<V> widths;
  for (size_t d = 0; d < result.size(); ++d) {
    if (result[d] < pooled[d]) node.Invalid("output_shape is smaller than what was pooled");
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

/// Identity, and a mask that keeps everything: executables do not train.
Results ConvertDropout(NodeContext& node) {
  const bool trains = node.opset() >= 12 && node.HasInput(2) && (!node.IsConstant(2) || node.Constant(2).At(0) != 0);
  if (trains && (!node.IsConstant(1) || node.Constant(1).At(0) != 0))
    node.Unsupported("dropout in training mode draws random numbers");
  Results results{node.Input(0)};
  if (node.HasOutput(1)) {
    const DataType dtype = node.opset() >= 10 ? kBool : node.TypeOf(node.Input(0)).dtype();
    results.push_back(node.Op("ones", {}, {{"shape", node.ShapeOf(node.Input(0))}, {"dtype", dtype}}));
  }
  return results;
}

}  // namespace

Expr Convolve(NodeContext& node, const Expr& data, const Expr& weight) {
  const Shape weight_shape = node.ShapeOf(weight);
  if (weight_shape.size() < 3 || weight_shape.size() > 5) {
    node.Unsupported(fmt::format("convolution with a weight of rank {}", weight_shape.size()));
  }
  const size_t rank = weight_shape.size() - 2;
  const Window window = ReadWindow(node, node.ShapeOf(data), V(weight_shape.begin() + 2, weight_shape.end()));
  return node.Op(fmt::format("nn.conv{}d", rank), {data, weight},
                 {{"strides", window.strides},
                  {"padding", window.padding},
                  {"dilation", window.dilations},
                  {"groups", node.Int("group", 1)},
                  {"channels", weight_shape[0]},
                  {"kernel_size", window.kernel}});
}

void AddNeuralConverters(OnnxConverters& converters) {
  converters["Conv"] = ConvertConv;
  converters["ConvTranspose"] = ConvertConvTranspose;
  converters["MaxPool"] = ConvertMaxPool;
  converters["MaxUnpool"] = ConvertMaxUnpool;
  converters["AveragePool"] = ConvertAveragePool;
  converters["LpPool"] = ConvertLpPool;
  converters["GlobalLpPool"] = ConvertGlobalLpPool;
  converters["GlobalAveragePool"] = GlobalPool("avg");
  converters["GlobalMaxPool"] = GlobalPool("max");
  converters["LeakyRelu"] = ConvertLeakyRelu;
  converters["PRelu"] = ConvertPRelu;
  converters["Dropout"] = ConvertDropout;
}

}  // namespace collage
