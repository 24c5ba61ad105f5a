// loss.cc: losses of ONNX, which some models compute while they run.
#include <fmt/format.h>

#include <numeric>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Minus the weighted logarithms of the targets' probabilities; data [N, C, …], target [N, …].
Expr NegativeLogLikelihood(NodeContext& node, const Expr& data, const Expr& target, const Expr& weight) {
  if (node.Rank(target) != node.Rank(data) - 1)
    node.Invalid(fmt::format("targets of rank {} for data of rank {}", node.Rank(target), node.Rank(data)));
  const bool ignores = node.HasAttr("ignore_index");
  const Expr labels = node.Cast(target, kInt64);
  Expr chosen = labels;
  Expr is_ignored;
  if (ignores) {
    is_ignored = node.Op("equal", {labels, node.ScalarLike(static_cast<double>(node.Int("ignore_index", 0)), labels)});
    chosen = node.Op("where", {is_ignored, node.ScalarLike(0, labels), labels});
  }
  const Shape target_shape = node.ShapeOf(target);
  Shape column = target_shape;
  column.insert(column.begin() + 1, 1);
  const Expr picked =
      node.Reshape(node.Op("gather", {data, node.Reshape(chosen, column)}, {{"axis", 1}}), target_shape);
  Expr loss = node.Op("negative", {picked});
  Expr weights = weight ? node.Op("take", {weight, chosen}, {{"axis", 0}}) : Expr();
  if (ignores) {
    const Expr ones = weights ? weights : Filled(1, target_shape, node.TypeOf(data).dtype());
    weights = node.Op("where", {is_ignored, node.ScalarLike(0, ones), ones});
  }
  if (weights) loss = node.Op("multiply", {loss, weights});
  const std::string reduction = node.String("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction == "sum") return node.Op("sum", {loss});
  if (reduction != "mean") node.Invalid("there is no reduction '" + reduction + "'");
  if (!weights) return node.Op("mean", {loss});
  return node.Op("divide", {node.Op("sum", {loss}), node.Op("sum", {weights})});
}

Results ConvertNegativeLogLikelihood(NodeContext& node) {
  return {NegativeLogLikelihood(node, node.Input(0), node.Input(1), node.HasInput(2) ? node.Input(2) : Expr())};
}

Results ConvertSoftmaxCrossEntropy(NodeContext& node) {
  const Expr logarithms = node.Op("nn.log_softmax", {node.Input(0)}, {{"axis", 1}});
  return {NegativeLogLikelihood(node, logarithms, node.Input(1), node.HasInput(2) ? node.Input(2) : Expr()),
          logarithms};
}

}  // namespace

void AddLossConverters(OnnxConverters& converters) {
  converters.Add("NegativeLogLikelihoodLoss", ConvertNegativeLogLikelihood,
                 "input: float[2..], target: int[1..], weight?: same[1] -> loss");
  converters.Add("SoftmaxCrossEntropyLoss", ConvertSoftmaxCrossEntropy,
                 "scores: float[2..], labels: int[1..], weights?: same[1] -> output, log_prob?");
}

}  // namespace collage
