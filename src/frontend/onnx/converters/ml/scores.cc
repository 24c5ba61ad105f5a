// scores.cc: from scores to probabilities and labels, as ONNX Runtime computes them.
#include <fmt/format.h>

#include <cmath>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/ml/ml.h"
#include "frontend/onnx/narrow_types.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// The inverse of the normal distribution's function by an approximation of the inverse error function (Winitzki).
Expr Probit(NodeContext& node, const Expr& p) {
  constexpr double kA = 0.147, kPi = 3.14159;
  const Expr x = Shifted(node, Scaled(node, p, 2), -1);
  const Expr one = node.ScalarLike(1, x);
  const Expr log = node.Op("log", {node.Op("multiply", {node.Op("subtract", {one, x}), node.Op("add", {one, x})})});
  const Expr half = Shifted(node, Scaled(node, log, 0.5), 2 / (kPi * kA));
  const Expr root =
      node.Op("sqrt", {node.Op("subtract", {node.Op("multiply", {half, half}), Scaled(node, log, 1 / kA)})});
  const Expr magnitude = node.Op("sqrt", {node.Op("subtract", {root, half})});
  const Expr is_negative = node.Op("less", {x, node.ScalarLike(0, x)});
  const Expr signed_one = node.Op("where", {is_negative, node.ScalarLike(-1, x), one});
  return Scaled(node, node.Op("multiply", {signed_one, magnitude}), 1.41421356);
}

/// A softmax of the scores that are not 0; those that are stay so.
Expr SoftmaxZero(NodeContext& node, const Expr& x) {
  const Expr largest = node.Op("max", {x}, {{"axis", V{-1}}, {"keepdims", true}});
  const Expr counts = node.Op("greater", {node.Op("abs", {x}), node.ScalarLike(1e-7, x)});
  const Expr power = node.Op("exp", {node.Op("subtract", {x, largest})});
  const Expr powers = node.Op("where", {counts, power, node.ScalarLike(0, x)});
  const Expr sum = node.Op("sum", {powers}, {{"axis", V{-1}}, {"keepdims", true}});
  const Expr small = node.Op("multiply", {x, node.Op("exp", {node.Op("negative", {largest})})});
  return node.Op("divide", {node.Op("where", {counts, power, small}), sum});
}

}  // namespace

Expr RowsOfFeatures(NodeContext& node, const Expr& x) {
  return node.Rank(x) == 1 ? node.Op("expand_dims", {x}, {{"axis", 0}}) : x;
}

std::string PostTransform(NodeContext& node) {
  return node.OneOf("post_transform", "NONE", {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"});
}

Expr PostTransformed(NodeContext& node, const Expr& scores, const std::string& transform) {
  if (transform == "LOGISTIC") return node.Op("sigmoid", {scores});
  if (transform == "SOFTMAX") return node.Op("nn.softmax", {scores}, {{"axis", -1}});
  if (transform == "SOFTMAX_ZERO") return SoftmaxZero(node, scores);
  return transform == "PROBIT" ? Probit(node, scores) : scores;
}

V ClassLabels(NodeContext& node, const char* ints) {
  V labels = node.Ints(ints, {});
  if (!labels.empty()) return labels;
  const std::vector<std::string> names = node.Strings("classlabels_strings");
  if (names.empty()) node.Invalid(fmt::format("has no class labels ('{}')", ints));
  node.SetNarrow(0, TextType());
  return node.StringTensor(names).ToInts();
}

Expr Numbers(const Shape& shape, DataType dtype, const std::vector<double>& values) {
  const Tensor tensor = Tensor::Empty(shape, dtype);
  for (size_t i = 0; i < values.size(); ++i) tensor.Set(static_cast<int64_t>(i), values[i]);
  return MakeConstant(tensor);
}

Expr LabelsAt(NodeContext& node, const V& labels, const Expr& index) {
  return node.Op("take", {Int64s(labels), index}, {{"axis", 0}});
}

Expr LabelsWhere(NodeContext& node, const Expr& is_first, int64_t first, int64_t second) {
  const Expr index = node.Cast(node.Op("logical_not", {is_first}), kInt64);
  return LabelsAt(node, {first, second}, index);
}

Expr BothScores(NodeContext& node, const Expr& score, bool is_probability) {
  const DataType dtype = node.TypeOf(score).dtype();
  const Expr both = node.Op("multiply", {score, Numbers({2}, dtype, {-1, 1})});
  return is_probability ? node.Op("add", {both, Numbers({2}, dtype, {1, 0})}) : both;
}

Expr Column(NodeContext& node, const Expr& matrix, int64_t column) {
  return Slice(node, matrix, 1, column, column + 1);
}

}  // namespace collage
