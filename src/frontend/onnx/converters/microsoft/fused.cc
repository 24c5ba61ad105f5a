// fused.cc: operators of com.microsoft that stand for several of ONNX, or for one in another layout.
#include <fmt/format.h>

#include <numeric>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/microsoft/microsoft.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

Expr Gelu(NodeContext& node, const Expr& x) { return node.ConvertAs("Gelu", {x})[0]; }

Results ConvertGelu(NodeContext& node) { return {Gelu(node, node.Input(0))}; }

Results ConvertBiasGelu(NodeContext& node) { return {Gelu(node, node.Op("add", {node.Input(0), node.Input(1)}))}; }

/// GELU with a hyperbolic tangent, its factors as ONNX Runtime rounds them.
Results ConvertFastGelu(NodeContext& node) {
  Expr x = node.Input(0);
  if (node.HasInput(1)) x = node.Op("add", {x, node.Input(1)});
  return {GeluByTanh(node, x)};
}

/// x * sigmoid(alpha * x).
Results ConvertQuickGelu(NodeContext& node) { return {Swish(node, node.Input(0), node.Float("alpha", 1.702))}; }

/// input + bias + skip.
Results ConvertBiasAdd(NodeContext& node) {
  return {node.Op("add", {node.Op("add", {node.Input(0), node.Input(1)}), node.Input(2)})};
}

/// The activation that attribute `activation` names, with numbers that `parameter` has by position.
Expr Activated(NodeContext& node, const Expr& x, const std::function<double(size_t i, double fallback)>& parameter) {
  const std::string name = node.String("activation", "");
  if (name.empty()) return x;
  if (name == "Relu") return node.Op("nn.relu", {x});
  if (name == "Tanh") return node.Op("tanh", {x});
  if (name == "Sigmoid") return node.Op("sigmoid", {x});
  if (name == "LeakyRelu") return node.Op("nn.leaky_relu", {x}, {{"alpha", parameter(0, 0.01)}});
  if (name == "Clip") return node.Op("clip", {x}, {{"a_min", parameter(0, -3.4e38)}, {"a_max", parameter(1, 3.4e38)}});
  if (name == "HardSigmoid") {
    const Expr line = Shifted(node, Scaled(node, x, parameter(0, 0.2)), parameter(1, 0.5));
    return node.Op("clip", {line}, {{"a_min", 0.0}, {"a_max", 1.0}});
  }
  if (name == "HardSwish") return node.ConvertAs("HardSwish", {x})[0];
  node.Unsupported(fmt::format("activation '{}'", name));
}

/// Parameters as the attributes activation_alpha, activation_beta, activation_gamma.
std::function<double(size_t, double)> NamedParameters(NodeContext& node) {
  return [&node](size_t i, double fallback) {
    constexpr const char* kNames[] = {"activation_alpha", "activation_beta", "activation_gamma"};
    return node.Float(kNames[i], fallback);
  };
}

/// The last two dimensions exchanged, or the first and those up to the last but one turned round: [b, m, …, k] →
/// [m, …, b, k].
Expr Turned(NodeContext& node, const Expr& x, bool transposes, bool transposes_batch) {
  const int rank = node.Rank(x);
  if (rank < 2) return x;
  V axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (transposes_batch && rank > 2) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
  if (transposes) std::swap(axes[axes.size() - 2], axes.back());
  return std::ranges::is_sorted(axes) ? x : Transpose(node, x, axes);
}

Expr FusedProduct(NodeContext& node) {
  const Expr a = Turned(node, node.Input(0), node.Int("transA", 0) != 0, node.Int("transBatchA", 0) != 0);
  const Expr b = Turned(node, node.Input(1), node.Int("transB", 0) != 0, node.Int("transBatchB", 0) != 0);
  const Expr product = MultiplyMatrices(node, a, b);
  const double alpha = node.Float("alpha", 1);
  return alpha == 1 ? product : Scaled(node, product, alpha);
}

Results ConvertFusedMatMul(NodeContext& node) { return {FusedProduct(node)}; }

Results ConvertFusedMatMulActivation(NodeContext& node) {
  return {Activated(node, FusedProduct(node), NamedParameters(node))};
}

Results ConvertFusedGemm(NodeContext& node) {
  const Expr product = node.ConvertAs("Gemm", {node.Input(0), node.Input(1), node.InputOrNull(2)})[0];
  return {Activated(node, product, NamedParameters(node))};
}

Results ConvertGemmFastGelu(NodeContext& node) {
  Expr x = MultiplyMatrices(node, node.Input(0), node.Input(1));
  if (node.HasInput(2)) x = node.Op("add", {x, node.Input(2)});
  return {GeluByTanh(node, x)};
}

/// Convolution, plus a tensor, and an activation with parameters in a list.
Expr FusedConvolution(NodeContext& node, const Expr& data, const Expr& other) {
  Expr result = node.ConvertAs("Conv", {data, node.Input(1), node.InputOrNull(2)})[0];
  if (other != nullptr) result = node.Op("add", {result, other});
  const std::vector<double> given = node.Floats("activation_params");
  return Activated(node, result, [&](size_t i, double fallback) { return i < given.size() ? given[i] : fallback; });
}

Results ConvertFusedConv(NodeContext& node) { return {FusedConvolution(node, node.Input(0), node.InputOrNull(3))}; }

Results ConvertNhwcConv(NodeContext& node) {
  const Expr other = node.HasInput(3) ? ChannelsFirst(node, node.Input(3)) : nullptr;
  return {ChannelsLast(node, FusedConvolution(node, ChannelsFirst(node, node.Input(0)), other))};
}

Results ConvertNhwcMaxPool(NodeContext& node) {
  return {ChannelsLast(node, node.ConvertAs("MaxPool", {ChannelsFirst(node, node.Input(0))})[0])};
}

/// softmax(data + bias) over the dimensions from `axis` on, taken together.
Results ConvertBiasSoftmax(NodeContext& node) {
  const Expr data = node.Input(0);
  const Sizes shape = node.SizesOf(data), bias_shape = node.SizesOf(node.Input(1));
  const int64_t axis = NormalAxis(node, node.Int("axis", 1), node.Rank(data));
  Expr bias = node.Input(1);
  if (node.Int("is_inner_broadcast", 0) != 0 && bias_shape.size() < shape.size()) {
    // The bias has the first dimensions and the last ones; those between are repeated.
    const auto inner = static_cast<int64_t>(shape.size()) - axis;
    Sizes wide(bias_shape.begin(), bias_shape.end() - inner);
    wide.resize(static_cast<size_t>(axis), 1);
    wide.insert(wide.end(), bias_shape.end() - inner, bias_shape.end());
    bias = node.Reshape(bias, wide);
  }
  const Expr sum = node.Op("add", {data, bias});
  Sizes flat(2, 1);
  for (size_t i = 0; i < shape.size(); ++i) flat[static_cast<int64_t>(i) < axis ? 0 : 1] *= shape[i];
  return {node.Reshape(node.Op("nn.softmax", {node.Reshape(sum, flat)}, {{"axis", -1}}), shape)};
}

/// The first half of input + bias times GELU of the second one.
Results ConvertBiasSplitGelu(NodeContext& node) {
  const Expr sum = node.Op("add", {node.Input(0), node.Input(1)});
  const int64_t features = node.Known(node.SizesOf(sum).back(), "the number of features");
  const int64_t axis = node.Rank(sum) - 1;
  return {node.Op("multiply", {Slice(node, sum, axis, 0, features / 2),
                               Gelu(node, Slice(node, sum, axis, features / 2, features))})};
}

Results ConvertRange(NodeContext& node) {
  const Expr step = node.HasInput(2) ? node.Input(2) : node.ScalarLike(1, node.Input(0));
  return node.ConvertAs("Range", {node.Input(0), node.Input(1), step});
}

}  // namespace

OnnxConverter AsInOnnx(const std::string& op) {
  return [op](NodeContext& node) { return node.ConvertAs(op, node.inputs()); };
}

void AddMicrosoftFused(OnnxConverters& converters) {
  const auto add = [&](const std::string& name, const OnnxConverter& convert, std::string_view signature) {
    converters.Add("com.microsoft." + name, convert, signature);
  };
  add("Gelu", ConvertGelu, "X: float -> Y");
  add("BiasGelu", ConvertBiasGelu, "A: float[1..], B: same[1] -> C");
  add("FastGelu", ConvertFastGelu, "X: float, bias?: same[1] -> Y");
  add("QuickGelu", ConvertQuickGelu, "X: float -> Y");
  add("BiasAdd", ConvertBiasAdd, "X: float[3], bias: same[1], skip: same[3] -> Y");
  add("BiasSplitGelu", ConvertBiasSplitGelu, "X: float[3], bias: same[1] -> Y");
  add("BiasSoftmax", ConvertBiasSoftmax, "data: float[1..], bias: same[1..] -> output");
  for (const char* name : {"FusedMatMul", "TransposeMatMul"}) {
    add(name, ConvertFusedMatMul, "A: float[1..], B: same[1..] -> Y");
  }
  add("FusedMatMulActivation", ConvertFusedMatMulActivation, "A: float[1..], B: same[1..] -> Y");
  add("FusedGemm", ConvertFusedGemm, "A: float[2], B: same[2], C?: same[0..2] -> Y");
  add("GemmFastGelu", ConvertGemmFastGelu, "X: float[2..], W: same[2], bias?: same[1] -> Y");
  constexpr const char* kConvolution = "X: float[3..5+], W: same[3..5+], B?: same[1], Z?: same[3..5+] -> Y";
  add("FusedConv", ConvertFusedConv, kConvolution);
  for (const char* name : {"NhwcConv", "NhwcFusedConv"}) add(name, ConvertNhwcConv, kConvolution);
  add("NhwcMaxPool", ConvertNhwcMaxPool, "x: number[3..5+] -> y");
  add("Trilu", AsInOnnx("Trilu"), "X: [2..], k?: int[0..1] -> Y");
  add("GatherND", AsInOnnx("GatherND"), "data: [1..], indices: int[1..] -> output");
  add("Range", ConvertRange, "start: number[0..1], limit: same[0..1], delta?: same[0..1] -> Y");
}

}  // namespace collage
