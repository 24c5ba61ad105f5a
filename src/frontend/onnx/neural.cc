// neural.cc: convolutions, pooling, normalisation and resizing of ONNX.
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

OnnxConverter Pool(bool is_max) {
  return [is_max](NodeContext& node) -> Results {
    if (node.num_outputs() > 1) node.Unsupported("the indices of a max pool");
    const Expr data = node.Input(0);
    const size_t rank = node.ShapeOf(data).size() - 2;
    if (rank < 1 || rank > 3) node.Unsupported(fmt::format("pooling over {} dimensions", rank));
    const Window window = ReadWindow(node, node.ShapeOf(data), node.Ints("kernel_shape", {}));
    Attrs attrs{{"pool_size", window.kernel},
                {"strides", window.strides},
                {"dilation", window.dilations},
                {"padding", window.padding},
                {"ceil_mode", node.Int("ceil_mode", 0) != 0}};
    if (!is_max) attrs.Set("count_include_pad", node.Int("count_include_pad", 0) != 0);
    return {node.Op(fmt::format("nn.{}_pool{}d", is_max ? "max" : "avg", rank), {data}, std::move(attrs))};
  };
}

OnnxConverter GlobalPool(const char* kind) {
  return [kind](NodeContext& node) -> Results {
    const int rank = node.Rank(node.Input(0)) - 2;
    if (rank < 1 || rank > 3) node.Unsupported(fmt::format("pooling over {} dimensions", rank));
    return {node.Op(fmt::format("nn.global_{}_pool{}d", kind, rank), {node.Input(0)})};
  };
}

Results ConvertBatchNorm(NodeContext& node) {
  if (node.Int("training_mode", 0) != 0) node.Unsupported("batch normalisation in training mode");
  std::vector<Expr> args;
  for (size_t i = 0; i < 5; ++i) args.push_back(node.Input(i));
  const Expr call = node.Op("nn.batch_norm", args, {{"epsilon", node.Float("epsilon", 1e-5)}});
  return {node.Field(call, 0)};
}

Results ConvertInstanceNorm(NodeContext& node) {
  return {node.Op("nn.instance_norm", {node.Input(0), node.Input(1), node.Input(2)},
                  {{"epsilon", node.Float("epsilon", 1e-5)}})};
}

Results ConvertLayerNorm(NodeContext& node) {
  const Expr data = node.Input(0);
  const Shape shape = node.ShapeOf(data);
  int64_t axis = node.Int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) node.Invalid("axis is out of range");
  int64_t length = 1;
  for (size_t i = static_cast<size_t>(axis); i < shape.size(); ++i) length *= shape[i];
  // Normalising the last dimensions together is normalising one that merges them.
  const bool merged = axis + 1 < static_cast<int64_t>(shape.size());
  Shape flat(shape.begin(), shape.begin() + axis);
  flat.push_back(length);
  const Expr gamma = node.Reshape(node.Input(1), {length});
  const Expr beta =
      node.HasInput(2) ? node.Reshape(node.Input(2), {length}) : Filled(0, {length}, node.TypeOf(data).dtype());
  const Expr result = node.Op("nn.layer_norm", {merged ? node.Reshape(data, flat) : data, gamma, beta},
                              {{"epsilon", node.Float("epsilon", 1e-5)}});
  return {merged ? node.Reshape(result, shape) : result};
}

Results ConvertRmsNorm(NodeContext& node) {
  const Expr data = node.Input(0);
  const Expr mean =
      node.Op("mean", {node.Op("multiply", {data, data})}, {{"axis", V{node.Int("axis", -1)}}, {"keepdims", true}});
  const Expr root = node.Op("sqrt", {node.Op("add", {mean, node.ScalarLike(node.Float("epsilon", 1e-5), mean)})});
  return {node.Op("multiply", {node.Op("divide", {data, root}), node.Input(1)})};
}

OnnxConverter SoftmaxLike(const char* op) {
  return [op](NodeContext& node) -> Results {
    const Expr data = node.Input(0);
    if (node.opset() >= 13) return {node.Op(op, {data}, {{"axis", node.Int("axis", -1)}})};
    // Before opset 13: over all dimensions from axis on, taken together.
    const Shape shape = node.ShapeOf(data);
    int64_t axis = node.Int("axis", 1);
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    if (axis == static_cast<int64_t>(shape.size()) - 1) return {node.Op(op, {data}, {{"axis", -1}})};
    Shape flat(2, 1);
    for (size_t i = 0; i < shape.size(); ++i) flat[static_cast<int64_t>(i) < axis ? 0 : 1] *= shape[i];
    return {node.Reshape(node.Op(op, {node.Reshape(data, flat)}, {{"axis", -1}}), shape)};
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

Results ConvertDropout(NodeContext& node) { return {node.Input(0), nullptr}; }

// ---- resizing ----

Expr ResizeTo(NodeContext& node, const Shape& sizes, const std::vector<double>& scales, const std::string& mode,
              const std::string& coordinates, const std::string& nearest, double cubic_alpha) {
  const Expr data = node.Input(0);
  const Shape shape = node.ShapeOf(data);
  const size_t rank = shape.size() - 2;
  if (rank < 1 || rank > 3 || sizes[0] != shape[0] || sizes[1] != shape[1]) {
    node.Unsupported("resizing batch or channels");
  }
  AttrValue::List scale_list;
  for (size_t i = 2; i < scales.size(); ++i) scale_list.emplace_back(scales[i]);
  const std::string method = mode == "nearest" ? "nearest_neighbor" : mode;
  if (method != "nearest_neighbor" && method != "linear" && method != "cubic")
    node.Unsupported("resize mode '" + mode + "'");
  if (coordinates == "tf_crop_and_resize") node.Unsupported("coordinate transformation '" + coordinates + "'");
  const std::string rounding =
      nearest == "floor" || nearest == "ceil" || nearest == "round_prefer_ceil" ? nearest : "round";
  return node.Op(fmt::format("image.resize{}d", rank), {data},
                 {{"size", V(sizes.begin() + 2, sizes.end())},
                  {"method", method},
                  {"coordinate_transformation_mode", coordinates},
                  {"rounding_method", rounding},
                  {"cubic_alpha", cubic_alpha},
                  {"scales", scale_list.empty() ? AttrValue() : AttrValue(std::move(scale_list))}});
}

Results ConvertResize(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  const bool old = node.opset() < 11;
  if (node.HasAttr("axes")) node.Unsupported("resizing some axes only");
  if (node.Int("antialias", 0) != 0) node.Unsupported("antialiased resizing");
  std::vector<double> scales;
  Shape sizes;
  const size_t scale_input = old ? 1 : 2;
  if (node.HasInput(scale_input) && NumElements(node.ShapeOf(node.Input(scale_input))) > 0) {
    const Tensor values = node.Constant(scale_input);
    for (int64_t i = 0; i < values.num_elements(); ++i) scales.push_back(values.At(i));
    if (scales.size() != shape.size()) node.Invalid("scales do not fit the data's rank");
    for (size_t i = 0; i < shape.size(); ++i) {
      sizes.push_back(static_cast<int64_t>(std::floor(static_cast<double>(shape[i]) * scales[i])));
    }
  } else if (node.HasInput(3)) {
    sizes = node.ConstantInts(3);
    if (sizes.size() != shape.size()) node.Invalid("sizes do not fit the data's rank");
  } else {
    node.Invalid("neither scales nor sizes");
  }
  const std::string coordinates = old ? "asymmetric" : node.String("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = old ? "floor" : node.String("nearest_mode", "round_prefer_floor");
  return {ResizeTo(node, sizes, scales, node.String("mode", "nearest"), coordinates, nearest,
                   node.Float("cubic_coeff_a", -0.75))};
}

Results ConvertUpsample(NodeContext& node) {
  const Shape shape = node.ShapeOf(node.Input(0));
  std::vector<double> scales = node.Floats("scales");
  if (node.HasInput(1)) {
    const Tensor values = node.Constant(1);
    for (int64_t i = 0; i < values.num_elements(); ++i) scales.push_back(values.At(i));
  }
  if (scales.size() != shape.size()) node.Invalid("scales do not fit the data's rank");
  Shape sizes;
  for (size_t i = 0; i < shape.size(); ++i) {
    sizes.push_back(static_cast<int64_t>(std::floor(static_cast<double>(shape[i]) * scales[i])));
  }
  return {ResizeTo(node, sizes, scales, node.String("mode", "nearest"), "asymmetric", "floor", -0.75)};
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
  converters["MaxPool"] = Pool(/*is_max=*/true);
  converters["AveragePool"] = Pool(/*is_max=*/false);
  converters["GlobalAveragePool"] = GlobalPool("avg");
  converters["GlobalMaxPool"] = GlobalPool("max");
  converters["BatchNormalization"] = ConvertBatchNorm;
  converters["InstanceNormalization"] = ConvertInstanceNorm;
  converters["LayerNormalization"] = ConvertLayerNorm;
  converters["RMSNormalization"] = ConvertRmsNorm;
  converters["Softmax"] = SoftmaxLike("nn.softmax");
  converters["LogSoftmax"] = SoftmaxLike("nn.log_softmax");
  converters["LeakyRelu"] = ConvertLeakyRelu;
  converters["PRelu"] = ConvertPRelu;
  converters["Dropout"] = ConvertDropout;
  converters["Resize"] = ConvertResize;
  converters["Upsample"] = ConvertUpsample;
}

}  // namespace collage
