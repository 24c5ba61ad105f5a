// attention_parts.cc: attention in matrix products, softmax and element-wise operators.
#include "frontend/onnx/attention_parts.h"

#include <fmt/format.h>

#include <limits>

namespace collage {
namespace {

using V = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The number of heads in [B, heads, S, D].
int64_t HeadsOf(NodeContext& node, const Expr& x) { return node.Known(node.SizesOf(x).at(1), "the number of heads"); }

}  // namespace

Expr SplitHeads(NodeContext& node, const Expr& x, int64_t heads) {
  const Sizes shape = node.SizesOf(x);
  const int64_t features = node.Known(shape.at(2), "the number of features");
  if (heads < 1 || features % heads != 0)
    node.Invalid(fmt::format("{} heads do not divide {} features", heads, features));
  return Transpose(node, node.Reshape(x, {shape[0], shape[1], heads, features / heads}), {0, 2, 1, 3});
}

Expr MergeHeads(NodeContext& node, const Expr& x) {
  const Sizes shape = node.SizesOf(x);
  return node.Reshape(Transpose(node, x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

Expr Positions(NodeContext& node, const SymbolicSize& count, size_t axis, size_t rank) {
  Sizes shape(rank, 1);
  shape[axis] = count;
  if (count.is_known()) return node.Reshape(Int64s(CountedUp(node, 0, count.known())), shape);
  const Expr numbers = node.Op("arange", {MakeScalar(0, kInt64), node.ComputeScalar(count), MakeScalar(1, kInt64)});
  return node.Reshape(node.WithSizes(numbers, {count}), shape);
}

Expr MaskBias(NodeContext& node, const Expr& condition, DataType dtype, double masked) {
  return node.Op("where", {condition, MakeScalar(0, dtype), MakeScalar(masked, dtype)});
}

Expr SumOf(NodeContext& node, const Expr& a, const Expr& b) { return !a ? b : !b ? a : node.Op("add", {a, b}); }

Expr PerBatch(NodeContext& node, const Expr& integers) {
  return node.Reshape(node.Cast(integers, kInt64), {node.SizesOf(integers).Product(), 1, 1, 1});
}

Expr AttentionScores(NodeContext& node, const Expr& queries, const Expr& keys) {
  const int64_t heads = HeadsOf(node, queries), key_heads = HeadsOf(node, keys);
  if (heads == key_heads) return MultiplyMatrices(node, queries, Transpose(node, keys, {0, 1, 3, 2}));
  if (key_heads < 1 || heads % key_heads != 0) {
    node.Invalid(fmt::format("{} heads of keys do not divide {} of queries", key_heads, heads));
  }
  const Sizes shape = node.SizesOf(queries);
  const Expr rows = node.Reshape(queries, {shape[0], key_heads, shape[2] * (heads / key_heads), shape[3]});
  const Expr scores = MultiplyMatrices(node, rows, Transpose(node, keys, {0, 1, 3, 2}));
  return node.Reshape(scores, {shape[0], heads, shape[2], node.SizesOf(keys)[2]});
}

Expr AttentionResult(NodeContext& node, const Expr& weights, const Expr& values) {
  const int64_t heads = HeadsOf(node, weights), value_heads = HeadsOf(node, values);
  if (heads == value_heads) return MultiplyMatrices(node, weights, values);
  if (value_heads < 1 || heads % value_heads != 0) {
    node.Invalid(fmt::format("{} heads of values do not divide {} of queries", value_heads, heads));
  }
  const Sizes shape = node.SizesOf(weights);
  const Expr rows = node.Reshape(weights, {shape[0], value_heads, shape[2] * (heads / value_heads), shape[3]});
  return node.Reshape(MultiplyMatrices(node, rows, values), {shape[0], heads, shape[2], node.SizesOf(values)[3]});
}

Expr MaskedSoftmax(NodeContext& node, const Expr& scores, const Expr& bias) {
  const Expr weights = node.Op("nn.softmax", {scores}, {{"axis", -1}});
  if (!bias) return weights;
  const Expr largest = node.Op("max", {bias}, {{"axis", V{-1}}, {"keepdims", true}});
  const Expr is_masked = node.Op("equal", {largest, node.ScalarLike(-kInfinity, largest)});
  const ConstantNode* known = As<ConstantNode>(is_masked);
  bool any = known == nullptr;
  for (int64_t i = 0; known != nullptr && i < known->value().num_elements(); ++i) {
    any = any || known->value().At(i) != 0;
  }
  return any ? node.Op("where", {is_masked, node.ScalarLike(0, weights), weights}) : weights;
}

Expr Rotate(NodeContext& node, const Expr& x, const Expr& cosines, const Expr& sines, int64_t half, bool interleaved) {
  const Sizes shape = node.SizesOf(x);
  const int64_t features = node.Known(shape.at(3), "the number of features"), rotated = 2 * half;
  const Expr turned = rotated == features ? x : Slice(node, x, 3, 0, rotated);
  const Sizes halves{shape[0], shape[1], shape[2], half}, column{shape[0], shape[1], shape[2], half, 1};
  Expr a, b;
  if (interleaved) {
    const Expr pairs = node.Reshape(turned, {shape[0], shape[1], shape[2], half, 2});
    a = node.Reshape(Slice(node, pairs, 4, 0, 1), halves);
    b = node.Reshape(Slice(node, pairs, 4, 1, 2), halves);
  } else {
    a = Slice(node, turned, 3, 0, half);
    b = Slice(node, turned, 3, half, rotated);
  }
  const auto times = [&](const Expr& left, const Expr& right) { return node.Op("multiply", {left, right}); };
  const Expr real = node.Op("subtract", {times(a, cosines), times(b, sines)});
  const Expr imaginary = node.Op("add", {times(a, sines), times(b, cosines)});
  Expr result;
  if (interleaved) {
    const Expr pairs = Concatenate(node, {node.Reshape(real, column), node.Reshape(imaginary, column)}, 4);
    result = node.Reshape(pairs, {shape[0], shape[1], shape[2], rotated});
  } else {
    result = Concatenate(node, {real, imaginary}, 3);
  }
  return rotated == features ? result : Concatenate(node, {result, Slice(node, x, 3, rotated, features)}, 3);
}

}  // namespace collage
