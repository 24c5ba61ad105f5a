// linear.cc: linear models of ai.onnx.ml: a product with constant coefficients.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/ml/ml.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Rows times coefficients [`targets`, F], in float32, plus `intercepts`, of which there may be none.
Expr LinearScores(NodeContext& node, int64_t targets, const std::vector<double>& intercepts) {
  const Expr x = node.Cast(RowsOfFeatures(node, node.Input(0)), kFloat32);
  const std::vector<double> coefficients = node.Floats("coefficients");
  const int64_t features = node.Known(node.SizesOf(x)[1], "the number of features");
  if (static_cast<int64_t>(coefficients.size()) != targets * features) {
    node.Invalid(
        fmt::format("attribute 'coefficients' has {} elements, {} are wanted: {} features for each of {} targets",
                    coefficients.size(), targets * features, features, targets));
  }
  const Expr product = node.Op("nn.dense", {x, Numbers({targets, features}, kFloat32, coefficients)});
  if (intercepts.empty()) return product;
  if (static_cast<int64_t>(intercepts.size()) != targets) {
    node.Invalid(fmt::format("attribute 'intercepts' has {} elements, {} are wanted", intercepts.size(), targets));
  }
  return node.Op("add", {product, Numbers({targets}, kFloat32, intercepts)});
}

Results ConvertLinearRegressor(NodeContext& node) {
  const int64_t targets = node.PositiveInt("targets", 1);
  const Expr scores = LinearScores(node, targets, node.Floats("intercepts"));
  const std::string transform = PostTransform(node);
  // One target has nothing to be set against.
  return {targets > 1 || transform == "PROBIT" ? PostTransformed(node, scores, transform) : scores};
}

Results ConvertLinearClassifier(NodeContext& node) {
  const V labels = ClassLabels(node, "classlabels_ints");
  const std::vector<double> intercepts = node.Floats("intercepts");
  if (intercepts.empty()) node.Invalid("has no attribute 'intercepts', which says how many classes there are");
  const auto classes = static_cast<int64_t>(intercepts.size());
  const Expr scores = LinearScores(node, classes, intercepts);
  const std::string transform = PostTransform(node);
  const auto wanted = static_cast<size_t>(std::max<int64_t>(classes, 2));
  if (labels.size() != wanted) node.Invalid(fmt::format("has {} class labels, {} are wanted", labels.size(), wanted));
  if (classes > 1) {
    const Expr best = node.Op("argmax", {scores}, {{"axis", V{1}}});
    return {LabelsAt(node, labels, best), PostTransformed(node, scores, transform)};
  }
  const Expr flat = node.Op("squeeze", {scores}, {{"axis", V{1}}});
  const Expr is_second = node.Op("greater", {flat, node.ScalarLike(0, flat)});
  const Expr label = LabelsWhere(node, is_second, labels[1], labels[0]);
  if (transform == "PROBIT") node.Unsupported("post_transform PROBIT of the score that stands for two classes");
  const Expr own = transform == "LOGISTIC" ? PostTransformed(node, scores, transform) : scores;
  return {label, BothScores(node, own, /*is_probability=*/true)};
}

}  // namespace

void AddMlLinear(OnnxConverters& converters) {
  converters.Add("ai.onnx.ml.LinearRegressor", ConvertLinearRegressor, "X: number[1..2] -> Y");
  converters.Add("ai.onnx.ml.LinearClassifier", ConvertLinearClassifier, "X: number[1..2] -> Y, Z?",
                 NarrowUse::kItsOwn);
}

}  // namespace collage
