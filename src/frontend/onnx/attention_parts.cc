// attention_parts.cc: attention in matrix products, softmax and element-wise operators.
#include "frontend/onnx/attention_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace collage {
namespace {

using V = std::vector<int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// How many of `heads` share each of `shared`, which are called `what`.
SymbolicSize HeadsPer(NodeContext& node, const SymbolicSize& shared, const SymbolicSize& heads, std::string_view what) {
  const bool is_known = shared.is_known() && heads.is_known();
  if ((shared.is_known() && shared.known() < 1) || (is_known && heads.known() % shared.known() != 0)) {
    node.Invalid(fmt::format("{} heads of {} do not divide {} of queries", shared.ToString(), what, heads.ToString()));
  }
  return SymbolicSize::FloorDivide(heads, shared);
}

}  // namespace

Expr SplitHeads(NodeContext& node, const Expr& x, int64_t heads) {
  const Sizes shape = node.SizesOf(x);
  const SymbolicSize& features = shape.at(2);
  if (heads < 1 || (features.is_known() && features.known() % heads != 0))
    node.Invalid(fmt::format("{} heads do not divide {} features", heads, features.ToString()));
  const SymbolicSize own = SymbolicSize::FloorDivide(features, heads);
  return Transpose(node, node.Reshape(x, {shape[0], shape[1], heads, own}), {0, 2, 1, 3});
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

Expr ByRootOf(NodeContext& node, const Expr& x, const SymbolicSize& features) {
  if (features.is_known()) {
    return Scaled(node, x, 1 / std::sqrt(static_cast<double>(std::max<int64_t>(features.known(), 1))));
  }
  const Expr root = node.Op("sqrt", {node.Cast(node.ComputeScalar(features), kFloat64)});
  const Expr factor = node.Op("divide", {MakeScalar(1, kFloat64), root});
  return node.Op("multiply", {x, node.Cast(factor, node.TypeOf(x).dtype())});
}

Expr AttentionScores(NodeContext& node, const Expr& queries, const Expr& keys) {
  const Sizes shape = node.SizesOf(queries);
  const SymbolicSize heads = shape[1], key_heads = node.SizesOf(keys)[1];
  if (heads == key_heads) return MultiplyMatrices(node, queries, Transpose(node, keys, {0, 1, 3, 2}));
  const SymbolicSize group = HeadsPer(node, key_heads, heads, "keys");
  const Expr rows = node.Reshape(queries, {shape[0], key_heads, shape[2] * group, shape[3]});
  const Expr scores = MultiplyMatrices(node, rows, Transpose(node, keys, {0, 1, 3, 2}));
  return node.Reshape(scores, {shape[0], heads, shape[2], node.SizesOf(keys)[2]});
}

Expr AttentionResult(NodeContext& node, const Expr& weights, const Expr& values) {
  const Sizes shape = node.SizesOf(weights);
  const SymbolicSize heads = shape[1], value_heads = node.SizesOf(values)[1];
  if (heads == value_heads) return MultiplyMatrices(node, weights, values);
  const SymbolicSize group = HeadsPer(node, value_heads, heads, "values");
  const Expr rows = node.Reshape(weights, {shape[0], value_heads, shape[2] * group, shape[3]});
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

Expr Rotate(NodeContext& node, const Expr& x, const Expr& cosines, const Expr& sines, const SymbolicSize& half,
            bool interleaved) {
  const Sizes shape = node.SizesOf(x);
  const SymbolicSize features = shape.at(3), rotated = 2 * half;
  const Expr turned = rotated == features ? x : SliceBetween(node, x, 3, 0, rotated);
  const Sizes halves{shape[0], shape[1], shape[2], half}, column{shape[0], shape[1], shape[2], half, 1};
  Expr a, b;
  if (interleaved) {
    const Expr pairs = node.Reshape(turned, {shape[0], shape[1], shape[2], half, 2});
    a = node.Reshape(Slice(node, pairs, 4, 0, 1), halves);
    b = node.Reshape(Slice(node, pairs, 4, 1, 2), halves);
  } else {
    a = SliceBetween(node, turned, 3, 0, half);
    b = SliceBetween(node, turned, 3, half, rotated);
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
  return rotated == features ? result : Concatenate(node, {result, SliceBetween(node, x, 3, rotated, features)}, 3);
}

}  // namespace collage
