// features.cc: operators of ai.onnx.ml that scale, fill in, select and join features.
#include <fmt/format.h>

#include <cmath>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/ml/ml.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// `values` as a constant that broadcasts with the features of `x`: one for all, or one for each.
Expr PerFeature(NodeContext& node, const char* name, const std::vector<double>& values, const Expr& x, DataType dtype) {
  const auto count = static_cast<int64_t>(values.size());
  if (count == 1) return MakeScalar(values[0], dtype);
  const int64_t features = node.Known(node.SizesOf(x).back(), "the number of features");
  if (count != features)
    node.Invalid(fmt::format("attribute '{}' has {} elements, 1 or {} are wanted", name, count, features));
  return Numbers({count}, dtype, values);
}

Results ConvertScaler(NodeContext& node) {
  const Expr x = node.Cast(node.Input(0), kFloat32);
  const std::vector<double> offset = node.Floats("offset"), scale = node.Floats("scale");
  if (offset.empty() || scale.empty()) node.Invalid("has no attribute 'offset' or 'scale'");
  const Expr centred = node.Op("subtract", {x, PerFeature(node, "offset", offset, x, kFloat32)});
  return {node.Op("multiply", {centred, PerFeature(node, "scale", scale, x, kFloat32)})};
}

/// Rows by their largest element, or by their norm; rows of which that is 0 stay.
Results ConvertNormalizer(NodeContext& node) {
  const std::string norm = node.OneOf("norm", "MAX", {"MAX", "L1", "L2"});
  const Expr x = node.Cast(node.Input(0), kFloat32);
  const Attrs along{{"axis", V{-1}}, {"keepdims", true}};
  Expr length;
  if (norm == "MAX") {
    length = node.Op("max", {x}, along);
  } else if (norm == "L1") {
    length = node.Op("sum", {node.Op("abs", {x})}, along);
  } else {
    length = node.Op("sqrt", {node.Op("sum", {node.Op("multiply", {x, x})}, along)});
  }
  const Expr is_zero = node.Op("equal", {length, node.ScalarLike(0, length)});
  return {node.Op("divide", {x, node.Op("where", {is_zero, node.ScalarLike(1, length), length})})};
}

Results ConvertImputer(NodeContext& node) {
  const Expr x = node.Input(0);
  const DataType dtype = node.TypeOf(x).dtype();
  std::vector<double> values = node.Floats("imputed_value_floats");
  double replaced = node.Float("replaced_value_float", 0);
  const char* name = "imputed_value_floats";
  if (!dtype.is_floating()) {
    name = "imputed_value_int64s";
    const V integers = node.Ints(name, {});
    values.assign(integers.begin(), integers.end());
    replaced = static_cast<double>(node.Int("replaced_value_int64", 0));
  }
  if (values.empty()) node.Invalid(fmt::format("has no attribute '{}'", name));
  const Expr is_missing =
      std::isnan(replaced) ? node.Op("isnan", {x}) : node.Op("equal", {x, node.ScalarLike(replaced, x)});
  return {node.Op("where", {is_missing, PerFeature(node, name, values, x, dtype), x})};
}

Results ConvertBinarizer(NodeContext& node) {
  const Expr x = node.Input(0);
  const Expr bound = node.ScalarLike(node.Float("threshold", 0), x);
  return {node.Cast(node.Op("greater", {x, bound}), node.TypeOf(x).dtype())};
}

/// Features of all rows; those of one row alone are a row of a matrix.
Results ConvertArrayFeatureExtractor(NodeContext& node) {
  const Expr x = RowsOfFeatures(node, node.Input(0));
  const Expr indices = node.Reshape(node.Input(1), {node.SizesOf(node.Input(1)).Product()});
  return {node.Op("take", {x, indices}, {{"axis", node.Rank(x) - 1}})};
}

/// Inputs side by side, each cut or filled up with zeros to its number of features.
Results ConvertFeatureVectorizer(NodeContext& node) {
  const V wanted = node.Ints("inputdimensions", {});
  if (wanted.size() != node.num_inputs()) {
    node.Invalid(
        fmt::format("attribute 'inputdimensions' has {} elements, {} are wanted", wanted.size(), node.num_inputs()));
  }
  Results parts;
  for (size_t i = 0; i < wanted.size(); ++i) {
    Expr part = node.Cast(RowsOfFeatures(node, node.Input(i)), kFloat32);
    const int64_t features = node.Known(node.SizesOf(part)[1], "the number of features");
    if (wanted[i] < 1) node.Invalid(fmt::format("input {} is to have {} features", i, wanted[i]));
    if (features > wanted[i]) part = Slice(node, part, 1, 0, wanted[i]);
    if (features < wanted[i])
      part = PadBy(node, part, {0, 0}, {0, wanted[i] - features}, MakeScalar(0, kFloat32), "constant");
    parts.push_back(part);
  }
  return {Concatenate(node, std::move(parts), 1)};
}

/// The matrix of scores in place of a map for each of its rows, whose keys are the labels in the order of the columns.
Results ConvertZipMap(NodeContext& node) { return {node.Input(0)}; }

}  // namespace

void AddMlFeatures(OnnxConverters& converters) {
  converters.Add("ai.onnx.ml.Scaler", ConvertScaler, "X: number[1..] -> Y");
  converters.Add("ai.onnx.ml.Normalizer", ConvertNormalizer, "X: number[1..2] -> Y");
  converters.Add("ai.onnx.ml.Imputer", ConvertImputer, "X: number[1..] -> Y");
  converters.Add("ai.onnx.ml.Binarizer", ConvertBinarizer, "X: number -> Y");
  converters.Add("ai.onnx.ml.ArrayFeatureExtractor", ConvertArrayFeatureExtractor, "X: [1..], Y: int[0..2] -> Z",
                 NarrowUse::kMoves);
  converters.Add("ai.onnx.ml.FeatureVectorizer", ConvertFeatureVectorizer, "X+: number[1..2] -> Y");
  converters.Add("ai.onnx.ml.ZipMap", ConvertZipMap, "X: float[1..2] -> Z");
}

}  // namespace collage
