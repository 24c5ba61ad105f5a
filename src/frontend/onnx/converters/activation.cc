// activation.cc: activations of ONNX that are made of simpler functions.
#include <fmt/format.h>

#include <cmath>

#include "frontend/onnx/attention_parts.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which no x overflows.
Expr Softplus(NodeContext& node, const Expr& x) {
  const Expr decay = node.Op("exp", {node.Op("negative", {node.Op("abs", {x})})});
  return node.Op("add", {node.Op("nn.relu", {x}), node.Op("log", {Shifted(node, decay, 1)})});
}

/// exp(min(x, 0)) - 1: the part of an exponential unit below zero.
Expr BelowZero(NodeContext& node, const Expr& x) {
  return Shifted(node, node.Op("exp", {node.Op("minimum", {x, node.ScalarLike(0, x)})}), -1);
}

/// relu(x) + alpha * (exp(min(x, 0)) - 1).
Expr Elu(NodeContext& node, const Expr& x, double alpha) {
  return node.Op("add", {node.Op("nn.relu", {x}), Scaled(node, BelowZero(node, x), alpha)});
}

Results ConvertElu(NodeContext& node) { return {Elu(node, node.Input(0), node.Float("alpha", 1))}; }

Results ConvertSelu(NodeContext& node) {
  const double alpha = node.Float("alpha", 1.67326319217681884765625);
  return {Scaled(node, Elu(node, node.Input(0), alpha), node.Float("gamma", 1.05070102214813232421875))};
}

/// max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)).
Results ConvertCelu(NodeContext& node) {
  const Expr x = node.Input(0);
  const double alpha = node.Float("alpha", 1);
  return {node.Op("add", {node.Op("nn.relu", {x}), Scaled(node, BelowZero(node, Scaled(node, x, 1 / alpha)), alpha)})};
}

Results ConvertSoftplus(NodeContext& node) { return {Softplus(node, node.Input(0))}; }

Results ConvertSoftsign(NodeContext& node) {
  return {node.Op("divide", {node.Input(0), Shifted(node, node.Op("abs", {node.Input(0)}), 1)})};
}

Results ConvertMish(NodeContext& node) {
  return {node.Op("multiply", {node.Input(0), node.Op("tanh", {Softplus(node, node.Input(0))})})};
}

Results ConvertSwish(NodeContext& node) { return {Swish(node, node.Input(0), node.Float("alpha", 1))}; }

Results ConvertThresholdedRelu(NodeContext& node) {
  const Expr x = node.Input(0);
  const Expr above = node.Op("greater", {x, node.ScalarLike(node.Float("alpha", 1), x)});
  return {node.Op("where", {above, x, node.ScalarLike(0, x)})};
}

/// x + bias below -lambd, x - bias above lambd, 0 between.
Results ConvertShrink(NodeContext& node) {
  const Expr x = node.Input(0);
  const double lambd = node.Float("lambd", 0.5);
  const double bias = node.Float("bias", 0);
  const Expr below = node.Op("less", {x, node.ScalarLike(-lambd, x)});
  const Expr above = node.Op("greater", {x, node.ScalarLike(lambd, x)});
  const Expr upper = node.Op("where", {above, Shifted(node, x, -bias), node.ScalarLike(0, x)});
  return {node.Op("where", {below, Shifted(node, x, bias), upper})};
}

/// 1 at the first largest element along an axis, 0 elsewhere.
Results ConvertHardmax(NodeContext& node) {
  const Expr x = node.Input(0);
  const Sizes shape = node.SizesOf(x);
  const int64_t axis = NormalAxis(node, node.Int("axis", node.opset() >= 13 ? -1 : 1), node.Rank(x));
  Expr data = x;
  int64_t along = axis;
  if (node.opset() < 13) {
    // Before opset 13: over all dimensions from axis on, taken together.
    Sizes flat(2, 1);
    for (size_t i = 0; i < shape.size(); ++i) flat[static_cast<int64_t>(i) < axis ? 0 : 1] *= shape[i];
    data = node.Reshape(x, flat);
    along = 1;
  }
  const DataType dtype = node.TypeOf(x).dtype();
  const SymbolicSize depth = node.SizesOf(data)[static_cast<size_t>(along)];
  if (!depth.is_known()) {
    const auto rank = static_cast<size_t>(node.Rank(data));
    const Expr largest = node.Cast(node.Op("argmax", {data}, {{"axis", V{along}}, {"keepdims", true}}), kInt64);
    const Expr here = node.Op("equal", {largest, Positions(node, depth, static_cast<size_t>(along), rank)});
    return {node.Reshape(node.Cast(here, dtype), shape)};
  }
  const Expr first = node.Op("argmax", {data}, {{"axis", V{along}}});
  const Expr hot = node.Op("one_hot", {first, MakeScalar(1, dtype), MakeScalar(0, dtype)},
                           {{"depth", depth.known()}, {"axis", along}, {"dtype", dtype}});
  return {node.Reshape(hot, shape)};
}

}  // namespace

void AddActivationConverters(OnnxConverters& converters) {
  converters.Add("Elu", ConvertElu, "X: float -> Y");
  converters.Add("Selu", ConvertSelu, "X: float -> Y");
  converters.Add("Celu", ConvertCelu, "X: float -> Y");
  converters.Add("Softplus", ConvertSoftplus, "X: float -> Y");
  converters.Add("Softsign", ConvertSoftsign, "input: float -> output");
  converters.Add("Mish", ConvertMish, "X: float -> Y");
  converters.Add("Swish", ConvertSwish, "X: float -> Y");
  converters.Add("ThresholdedRelu", ConvertThresholdedRelu, "X: float -> Y");
  converters.Add("Shrink", ConvertShrink, "input: number -> output");
  converters.Add("Hardmax", ConvertHardmax, "input: float -> output");
}

}  // namespace collage
