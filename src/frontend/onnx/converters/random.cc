// random.cc: operators of ONNX that draw random numbers, made of uniform and normal ones.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>

#include "frontend/onnx/builders.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;

/// The attribute `seed`, a float but for Dropout, as the operators of Relay have it; None where there is none.
AttrValue SeedOf(NodeContext& node) {
  if (!node.HasAttr("seed")) return {};
  if (node.op_type() == "Dropout") return node.Int("seed", 0);
  const double seed = node.Float("seed", 0);
  const bool is_whole = seed == std::trunc(seed) && std::abs(seed) < 0x1p53;
  return is_whole ? static_cast<int64_t>(seed) : std::bit_cast<int64_t>(seed);
}

/// Numbers that `op` draws: float64 where `dtype` is, else float32.
Expr Draw(NodeContext& node, const char* op, const Sizes& shape, DataType dtype) {
  const DataType drawn = dtype == kFloat64 ? kFloat64 : kFloat32;
  Attrs attrs{{"dtype", drawn}, {"seed", SeedOf(node)}, {"stream", node.NextRandomStream()}};
  if (!shape.is_known()) return node.Op(op, {node.Full(node.Scalar(0, kUInt8), shape)}, std::move(attrs));
  attrs.Set("shape", shape.known());
  return node.Op(op, {}, std::move(attrs));
}

/// scale * numbers + offset, as `dtype`.
Expr Linear(NodeContext& node, const Expr& numbers, double scale, double offset, DataType dtype) {
  const Expr scaled = scale == 1 ? numbers : Scaled(node, numbers, scale);
  return node.Cast(offset == 0 ? scaled : Shifted(node, scaled, offset), dtype);
}

Expr Uniform(NodeContext& node, const Sizes& shape, DataType dtype) {
  const double low = node.Float("low", 0);
  return Linear(node, Draw(node, "random.uniform", shape, dtype), node.Float("high", 1) - low, low, dtype);
}

Expr Normal(NodeContext& node, const Sizes& shape, DataType dtype) {
  const Expr numbers = Draw(node, "random.normal", shape, dtype);
  return Linear(node, numbers, node.Float("scale", 1), node.Float("mean", 0), dtype);
}

/// The dtype of the attribute `dtype`, or `fallback`.
DataType ResultType(NodeContext& node, std::optional<DataType> fallback) {
  const DataType dtype = !node.HasAttr("dtype") && fallback ? *fallback : node.DTypeOf(node.Int("dtype", 1));
  if (!dtype.is_floating()) node.Invalid(fmt::format("random numbers of {}, floats are wanted", dtype.ToString()));
  return dtype;
}

/// Random numbers in the shape that an attribute has.
OnnxConverter OfShape(Expr (*draw)(NodeContext& node, const Sizes& shape, DataType dtype)) {
  return [draw](NodeContext& node) -> Results {
    if (!node.HasAttr("shape")) node.Invalid("attribute 'shape' is missing");
    return {draw(node, Sizes(node.Ints("shape", {})), ResultType(node, std::nullopt))};
  };
}

/// Random numbers in the shape of the input.
OnnxConverter OfInput(Expr (*draw)(NodeContext& node, const Sizes& shape, DataType dtype)) {
  return [draw](NodeContext& node) -> Results {
    const Expr& like = node.Input(0);
    return {draw(node, node.SizesOf(like), ResultType(node, node.TypeOf(like).dtype()))};
  };
}

/// 1 with the likelihood that the input states for each element.
Results ConvertBernoulli(NodeContext& node) {
  const Expr& likelihood = node.Input(0);
  const DataType own = node.TypeOf(likelihood).dtype();
  const DataType dtype = node.HasAttr("dtype") ? node.DTypeOf(node.Int("dtype", 1)) : own;
  const Expr numbers = Draw(node, "random.uniform", node.SizesOf(likelihood), own);
  const Expr is_one = node.Op("less", {numbers, node.Cast(likelihood, node.TypeOf(numbers).dtype())});
  return {node.Cast(is_one, dtype)};
}

/// Classes drawn by logarithms of likelihoods, [batch, classes] → [batch, sample_size]: how many of the sums of
/// likelihoods up to each class, the last one apart, a uniform number is not below.
Results ConvertMultinomial(NodeContext& node) {
  const DataType dtype = node.DTypeOf(node.Int("dtype", 6));
  if (dtype != kInt32 && dtype != kInt64) node.Invalid(fmt::format("samples of {}", dtype.ToString()));
  const int64_t count = node.PositiveInt("sample_size", 1);
  const Expr likelihoods = node.Op("nn.softmax", {node.Cast(node.Input(0), kFloat32)}, {{"axis", -1}});
  const Sizes shape = node.SizesOf(likelihoods);
  const SymbolicSize& batch = shape[0];
  const Expr sums = node.Op("cumsum", {likelihoods}, {{"axis", 1}});
  const Expr inner = SliceBetween(node, sums, 1, 0, shape[1] - 1);
  const Expr numbers = node.Op("expand_dims", {Draw(node, "random.uniform", {batch, count}, kFloat32)}, {{"axis", 2}});
  const Expr is_above = node.Op("greater_equal", {numbers, node.Op("expand_dims", {inner}, {{"axis", 1}})});
  return {node.Op("sum", {node.Cast(is_above, dtype)}, {{"axis", std::vector<int64_t>{2}}})};
}

/// Elements are dropped with likelihood `ratio`, and the others scaled so that the mean stays.
Results ConvertDropout(NodeContext& node) {
  const Expr& data = node.Input(0);
  const DataType dtype = node.TypeOf(data).dtype();
  const bool has_modes = node.opset() >= 12;
  const bool may_train = has_modes && node.HasInput(2) && (!node.IsConstant(2) || node.ConstantNumber(2) != 0);
  const bool keeps_all = has_modes && node.HasInput(1) && node.IsConstant(1) && node.ConstantNumber(1) == 0;
  const Sizes shape = node.SizesOf(data);
  if (!may_train || keeps_all) {
    Results results{data};
    const DataType mask = node.opset() >= 10 ? kBool : dtype;
    if (node.HasOutput(1)) results.push_back(node.Full(MakeScalar(1, mask), shape));
    return results;
  }
  const Expr numbers = Draw(node, "random.uniform", shape, dtype);
  const DataType drawn = node.TypeOf(numbers).dtype();
  const Expr given = node.HasInput(1) ? node.Cast(node.Input(1), drawn) : node.Scalar(0.5, drawn);
  const Expr ratio = node.Reshape(given, Sizes());
  const Expr trains = node.Reshape(node.Input(2), Sizes());
  const Expr none = node.Scalar(0, drawn);
  // The ratio is 0 in a run that does not train.
  const Expr dropped = node.Op("where", {trains, ratio, none});
  const Expr mask = node.Op("greater_equal", {numbers, dropped});
  const Expr factor = node.Op("divide", {node.Scalar(1, drawn), node.Op("subtract", {node.Scalar(1, drawn), dropped})});
  const Expr scaled = node.Op("multiply", {node.Cast(data, drawn), factor});
  return {node.Cast(node.Op("where", {mask, scaled, none}), dtype), mask};
}

}  // namespace

void AddRandomConverters(OnnxConverters& converters) {
  converters.Add("RandomUniform", OfShape(Uniform), "-> output");
  converters.Add("RandomNormal", OfShape(Normal), "-> output");
  converters.Add("RandomUniformLike", OfInput(Uniform), "input -> output");
  converters.Add("RandomNormalLike", OfInput(Normal), "input -> output");
  converters.Add("Bernoulli", ConvertBernoulli, "input: float -> output");
  converters.Add("Multinomial", ConvertMultinomial, "input: float[2] -> output");
  converters.Add("Dropout", ConvertDropout,
                 "data: float, ratio?@12: float[0..1], training_mode?@12: bool[0..1] -> output, mask?");
}

}  // namespace collage
