// normalisation.cc: normalisation and softmax of ONNX.
#include <fmt/format.h>

#include <numeric>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

Expr Mean(NodeContext& node, const Expr& x, const V& axes) {
  return node.Op("mean", {x}, {{"axis", axes}, {"keepdims", true}});
}

/// 1 / sqrt(x + epsilon).
Expr InverseRoot(NodeContext& node, const Expr& x, double epsilon) {
  return node.Op("divide", {node.ScalarLike(1, x), node.Op("sqrt", {Shifted(node, x, epsilon)})});
}

/// A vector [C] as [C, 1, …] to be broadcast against data [N, C, …].
Expr PerChannel(NodeContext& node, const Expr& vector, int rank) {
  Shape shape(static_cast<size_t>(std::max(rank - 1, 1)), 1);
  shape[0] = NumElements(node.ShapeOf(vector));
  return node.Reshape(vector, shape);
}

/// Statistics of the batch, and running ones that move towards them.
Results BatchNormInTraining(NodeContext& node) {
  const Expr x = node.Input(0);
  const int rank = node.Rank(x);
  V axes{0};
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  const Expr mean = Mean(node, x, axes);
  const Expr centred = node.Op("subtract", {x, mean});
  const Expr variance = Mean(node, node.Op("multiply", {centred, centred}), axes);
  const Expr factor = node.Op(
      "multiply", {InverseRoot(node, variance, node.Float("epsilon", 1e-5)), PerChannel(node, node.Input(1), rank)});
  const Expr y = node.Op("add", {node.Op("multiply", {centred, factor}), PerChannel(node, node.Input(2), rank)});
  const double momentum = node.Float("momentum", 0.9);
  const auto moved = [&](const Expr& old, const Expr& now) {
    const Expr current = node.Cast(node.Reshape(now, node.SizesOf(old)), node.TypeOf(old).dtype());
    return node.Op("add", {Scaled(node, old, momentum), Scaled(node, current, 1 - momentum)});
  };
  return {y, moved(node.Input(3), mean), moved(node.Input(4), variance)};
}

Results ConvertBatchNorm(NodeContext& node) {
  if (node.opset() < 9 && node.Int("spatial", 1) == 0) node.Unsupported("statistics per element (spatial = 0)");
  if (node.opset() >= 14 && node.Int("training_mode", 0) != 0) return BatchNormInTraining(node);
  const Expr data = node.Input(0);
  const DataType dtype = node.TypeOf(data).dtype();
  std::vector<Expr> args{data};
  for (size_t i = 1; i < 5; ++i) args.push_back(node.Cast(node.Input(i), dtype));
  const Expr call = node.Op("nn.batch_norm", args, {{"epsilon", node.Float("epsilon", 1e-5)}});
  return {node.Field(call, 0)};
}

Results ConvertInstanceNorm(NodeContext& node) {
  return {node.Op("nn.instance_norm", {node.Input(0), node.Input(1), node.Input(2)},
                  {{"epsilon", node.Float("epsilon", 1e-5)}})};
}

Results ConvertGroupNorm(NodeContext& node) {
  const Expr data = node.Input(0);
  const int64_t groups = node.Int("num_groups", 0);
  const SymbolicSize own = node.SizesOf(data).at(1), given = node.SizesOf(node.Input(1))[0];
  const int64_t channels = node.Known(own.is_known() || node.opset() < 21 ? own : given, "the number of channels");
  if (groups < 1 || channels % groups != 0)
    node.Invalid(fmt::format("{} groups do not divide {} channels", groups, channels));
  // Before opset 21 there is one scale and one bias per group.
  const auto per_channel = [&](const Expr& x) {
    return node.opset() >= 21 ? x : node.Op("repeat", {x}, {{"repeats", channels / groups}, {"axis", 0}});
  };
  return {node.Op("nn.group_norm", {data, per_channel(node.Input(1)), per_channel(node.Input(2))},
                  {{"num_groups", groups}, {"axis", 1}, {"epsilon", node.Float("epsilon", 1e-5)}})};
}

Results ConvertLayerNorm(NodeContext& node) {
  return LayerNorm(node, node.Input(0), node.Input(1), node.InputOrNull(2), node.Int("axis", -1),
                   node.Float("epsilon", 1e-5));
}

Results ConvertRmsNorm(NodeContext& node) {
  return {RmsNorm(node, node.Input(0), node.Input(1), node.Int("axis", -1), node.Float("epsilon", 1e-5))};
}

/// Sum of |x|^p along an axis, to the 1/p.
Results ConvertLpNorm(NodeContext& node) {
  const Expr x = node.Input(0);
  const int64_t p = node.Int("p", 2);
  if (p != 1 && p != 2) node.Invalid(fmt::format("p must be 1 or 2, got {}", p));
  const Expr terms = p == 1 ? node.Op("abs", {x}) : node.Op("multiply", {x, x});
  Expr length = node.Op("sum", {terms}, {{"axis", V{node.Int("axis", -1)}}, {"keepdims", true}});
  if (p == 2) length = node.Op("sqrt", {length});
  // A vector of zeros stays one.
  const Expr is_zero = node.Op("equal", {length, node.ScalarLike(0, length)});
  return {node.Op("divide", {x, node.Op("where", {is_zero, node.ScalarLike(1, length), length})})};
}

Results ConvertMeanVarianceNorm(NodeContext& node) {
  const Expr x = node.Input(0);
  const V axes = node.Ints("axes", {0, 2, 3});
  const Expr centred = node.Op("subtract", {x, Mean(node, x, axes)});
  const Expr deviation = node.Op("sqrt", {Mean(node, node.Op("multiply", {centred, centred}), axes)});
  return {node.Op("divide", {centred, Shifted(node, deviation, 1e-9)})};
}

Results ConvertLrn(NodeContext& node) {
  return {node.Op("nn.lrn", {node.Input(0)},
                  {{"size", node.Int("size", 1)},
                   {"alpha", node.Float("alpha", 1e-4)},
                   {"beta", node.Float("beta", 0.75)},
                   {"bias", node.Float("bias", 1)}})};
}

OnnxConverter SoftmaxLike(const char* op) {
  return [op](NodeContext& node) -> Results {
    const Expr data = node.Input(0);
    if (node.opset() >= 13) return {node.Op(op, {data}, {{"axis", node.Int("axis", -1)}})};
    // Before opset 13: over all dimensions from axis on, taken together.
    const Sizes shape = node.SizesOf(data);
    const int64_t axis = NormalAxis(node, node.Int("axis", 1), node.Rank(data));
    if (axis == static_cast<int64_t>(shape.size()) - 1) return {node.Op(op, {data}, {{"axis", -1}})};
    Sizes flat(2, 1);
    for (size_t i = 0; i < shape.size(); ++i) flat[static_cast<int64_t>(i) < axis ? 0 : 1] *= shape[i];
    return {node.Reshape(node.Op(op, {node.Reshape(data, flat)}, {{"axis", -1}}), shape)};
  };
}

}  // namespace

std::vector<Expr> LayerNorm(NodeContext& node, const Expr& data, const Expr& scale, const Expr& bias, int64_t axis,
                            double epsilon) {
  const Sizes shape = node.SizesOf(data);
  axis = NormalAxis(node, axis, node.Rank(data));
  const Sizes inner(shape.begin() + axis, shape.end());
  const SymbolicSize length = inner.Product();
  // Normalising the last dimensions together is normalising one that merges them.
  const bool merged = axis + 1 < static_cast<int64_t>(shape.size());
  Sizes flat(shape.begin(), shape.begin() + axis);
  flat.push_back(length);
  const DataType dtype = node.TypeOf(data).dtype();
  const auto vector = [&](const Expr& x) { return node.Reshape(node.BroadcastTo(x, inner), {length}); };
  const Expr gamma = vector(scale);
  const Expr beta = bias != nullptr ? vector(bias) : node.Full(MakeScalar(0, dtype), {length});
  Expr result = node.Op("nn.layer_norm", {node.Reshape(data, flat), gamma, beta}, {{"epsilon", epsilon}});
  if (merged) result = node.Reshape(result, shape);
  Results results{result};
  if (node.HasOutput(1) || node.HasOutput(2)) {
    V axes(shape.size() - static_cast<size_t>(axis));
    std::iota(axes.begin(), axes.end(), axis);
    const Expr x = node.Cast(data, kFloat32);
    const Expr mean = Mean(node, x, axes);
    const Expr centred = node.Op("subtract", {x, mean});
    results.push_back(mean);
    results.push_back(InverseRoot(node, Mean(node, node.Op("multiply", {centred, centred}), axes), epsilon));
  }
  return results;
}

Expr RmsNorm(NodeContext& node, const Expr& data, const Expr& scale, int64_t axis, double epsilon) {
  const DataType dtype = node.TypeOf(data).dtype();
  const Expr x = dtype == kFloat64 ? data : node.Cast(data, kFloat32);
  V axes;
  for (int64_t i = NormalAxis(node, axis, node.Rank(data)); i < node.Rank(data); ++i) axes.push_back(i);
  const Expr mean = Mean(node, node.Op("multiply", {x, x}), axes);
  const Expr root = node.Op("sqrt", {Shifted(node, mean, epsilon)});
  const Expr normal = node.Cast(node.Op("divide", {x, root}), node.TypeOf(scale).dtype());
  return node.Op("multiply", {normal, scale});
}

void AddNormalisationConverters(OnnxConverters& converters) {
  converters.Add("BatchNormalization", ConvertBatchNorm,
                 "X: float[1..], scale: float[1+], B: float[1+], input_mean: float[1+], input_var: float[1+] -> Y, "
                 "mean?, var?, saved_mean?, saved_var?");
  converters.Add("InstanceNormalization", ConvertInstanceNorm,
                 "input: float[2..], scale: same[1], B: same[1] -> output");
  converters.Add("GroupNormalization", ConvertGroupNorm, "X: float[2..], scale: same[1], bias: same[1] -> Y");
  converters.Add("LayerNormalization", ConvertLayerNorm,
                 "X: float[1..], Scale: same, B?: same -> Y, Mean?, InvStdDev?");
  converters.Add("RMSNormalization", ConvertRmsNorm, "X: float[1..], scale: float -> Y");
  converters.Add("LpNormalization", ConvertLpNorm, "input: float[1..] -> output");
  converters.Add("MeanVarianceNormalization", ConvertMeanVarianceNorm, "X: float -> Y");
  converters.Add("LRN", ConvertLrn, "X: float[2..] -> Y");
  converters.Add("Softmax", SoftmaxLike("nn.softmax"), "input: float -> output");
  converters.Add("LogSoftmax", SoftmaxLike("nn.log_softmax"), "input: float -> output");
}

}  // namespace collage
