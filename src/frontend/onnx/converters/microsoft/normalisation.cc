// normalisation.cc: norms of com.microsoft with the sums and tables in front of them.
#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/microsoft/microsoft.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

constexpr double kEpsilon = 1e-12;  ///< default of all norms here

/// input + skip + bias.
Expr Skipped(NodeContext& node, size_t bias) {
  Expr sum = node.Op("add", {node.Input(0), node.Input(1)});
  if (node.HasInput(bias)) sum = node.Op("add", {sum, node.Input(bias)});
  return sum;
}

/// input, skip, gamma, beta?, bias? -> output, mean?, inverse deviation?, sum?
Results ConvertSkipLayerNorm(NodeContext& node) {
  const Expr sum = Skipped(node, 4);
  Results normal = LayerNorm(node, sum, node.Input(2), node.InputOrNull(3), -1, node.Float("epsilon", kEpsilon));
  normal.resize(3);
  normal.push_back(sum);
  return normal;
}

/// input, skip, gamma, bias? -> output, mean?, inverse root?, sum?
Results ConvertSkipRmsNorm(NodeContext& node) {
  if (node.HasOutput(1) || node.HasOutput(2)) node.Unsupported("statistics as results");
  const Expr sum = Skipped(node, 3);
  return {RmsNorm(node, sum, node.Input(2), -1, node.Float("epsilon", kEpsilon)), nullptr, nullptr, sum};
}

/// The first `count` rows of a table, or those at the positions of input 8.
Expr PositionRows(NodeContext& node, const Expr& table, const SymbolicSize& count) {
  if (node.HasInput(8)) return node.Op("take", {table, node.Input(8)}, {{"axis", 0}});
  return SliceBetween(node, table, 0, 0, count);
}

/// ids, segments?, tables of words, positions and segments?, gamma, beta, mask?, positions? -> output, number of
/// words?, sum of the tables' rows?
Results ConvertEmbedLayerNorm(NodeContext& node) {
  const Expr ids = node.Input(0);
  const Sizes shape = node.SizesOf(ids);
  const auto rows = [&](size_t table, const Expr& at) {
    return node.Op("take", {node.Input(table), at}, {{"axis", 0}});
  };
  Expr sum = node.Op("add", {rows(2, ids), PositionRows(node, node.Input(3), shape[1])});
  if (node.HasInput(4)) {
    const Expr segments = node.HasInput(1) ? node.Input(1) : node.Full(MakeScalar(0, kInt32), shape);
    sum = node.Op("add", {sum, rows(4, segments)});
  }
  const Expr normal = LayerNorm(node, sum, node.Input(5), node.Input(6), -1, node.Float("epsilon", kEpsilon))[0];
  if (!node.HasOutput(1)) return {normal, nullptr, sum};
  const Expr words = node.HasInput(7) ? node.Op("sum", {node.Cast(node.Input(7), kInt32)}, {{"axis", V{1}}})
                                      : node.Full(MakeScalar(0, kInt32), {shape[0]});
  return {normal, words, sum};
}

/// The norm of the root of the mean of squares, under the name that exporters used before opset 23.
Results ConvertSimplifiedLayerNorm(NodeContext& node) {
  if (node.HasOutput(1)) node.Unsupported("statistics as results");
  return {RmsNorm(node, node.Input(0), node.Input(1), node.Int("axis", -1), node.Float("epsilon", 1e-5))};
}

constexpr const char* kSimplified = "X: float[1..], scale: float -> Y, inv_std_var?";

}  // namespace

void AddMicrosoftNormalisation(OnnxConverters& converters) {
  // ONNX Runtime writes the operator into the standard domain, too.
  converters.Add("SimplifiedLayerNormalization", ConvertSimplifiedLayerNorm, kSimplified);
  converters.Add("com.microsoft.SimplifiedLayerNormalization", ConvertSimplifiedLayerNorm, kSimplified);
  converters.Add(
      "com.microsoft.SkipLayerNormalization", ConvertSkipLayerNorm,
      "input: float[2..3], skip: same[2..3], gamma: same[1], beta?: same[1], bias?: same[1] -> output, mean?, "
      "inv_std_var?, input_skip_bias_sum?");
  converters.Add("com.microsoft.SkipSimplifiedLayerNormalization", ConvertSkipRmsNorm,
                 "input: float[2..3], skip: same[2..3], gamma: same[1], bias?: same[1] -> output, mean?, inv_std_var?, "
                 "input_skip_bias_sum?");
  converters.Add(
      "com.microsoft.EmbedLayerNormalization", ConvertEmbedLayerNorm,
      "input_ids: int[2], segment_ids?: same[2], word_embedding: float[2], position_embedding: float[2], "
      "segment_embedding?: float[2], gamma: float[1], beta: float[1], mask?: int[2], position_ids?: int[2] -> "
      "output, mask_index?, embedding_sum?");
}

}  // namespace collage
