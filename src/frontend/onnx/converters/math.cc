// math.cc: element-wise operators and reductions of ONNX.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/narrow_types.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

OnnxConverter Unary(const char* op) {
  return [op](NodeContext& node) -> Results { return {node.Op(op, {node.Input(0)})}; };
}

OnnxConverter Binary(const char* op) {
  return [op](NodeContext& node) -> Results { return {node.Op(op, {node.Input(0), node.Input(1)})}; };
}

/// Elements of narrow types have different codes where they are different, but for floats.
Results ConvertEqual(NodeContext& node) {
  if (node.NarrowOf(0) != node.NarrowOf(1)) node.Invalid("A and B have different element types");
  if (node.NarrowOf(0) != nullptr && node.NarrowOf(0)->is_floating)
    node.Unsupported(fmt::format("input 0 has element type {}", node.NarrowOf(0)->name));
  return {node.Op("equal", {node.Input(0), node.Input(1)})};
}

Results ConvertBitwiseNot(NodeContext& node) { return {node.Op("bitwise_not", {node.Input(0)})}; }

Results ConvertDet(NodeContext& node) { return {node.Op("linalg.det", {node.Input(0)})}; }

/// Sum, Max, Min, Mean of any number of inputs.
OnnxConverter Variadic(const char* op, bool mean = false) {
  return [op, mean](NodeContext& node) -> Results {
    Expr result = node.Input(0);
    for (size_t i = 1; i < node.num_inputs(); ++i) result = node.Op(op, {result, node.Input(i)});
    if (mean) result = node.Op("divide", {result, node.ScalarLike(static_cast<double>(node.num_inputs()), result)});
    return {result};
  };
}

Results ConvertPow(NodeContext& node) {
  const DataType dtype = node.TypeOf(node.Input(0)).dtype();
  const DataType exponent = node.TypeOf(node.Input(1)).dtype();
  if (dtype.is_integer() && exponent.is_floating()) {
    // Computed with the exponent's fractions, and cut off then.
    return {
        node.Cast(node.Op("power", {node.Cast(node.Input(0), kFloat64), node.Cast(node.Input(1), kFloat64)}), dtype)};
  }
  return {node.Op("power", {node.Input(0), node.Cast(node.Input(1), dtype)})};
}

Results ConvertClip(NodeContext& node) {
  Expr x = node.Input(0);
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  if (node.opset() < 11) {
    low = node.Float("min", low);
    high = node.Float("max", high);
  } else {
    // Bounds that are not known become operands.
    if (node.HasInput(1) && !node.IsConstant(1)) x = node.Op("maximum", {x, node.Input(1)});
    if (node.IsConstant(1)) low = node.ConstantNumber(1);
    if (node.IsConstant(2)) high = node.ConstantNumber(2);
  }
  // A low bound above the high one gives the high one.
  if (std::isfinite(low) || std::isfinite(high)) {
    x = node.Op("clip", {x}, {{"a_min", std::min(low, high)}, {"a_max", high}});
  }
  if (node.opset() >= 11 && node.HasInput(2) && !node.IsConstant(2)) x = node.Op("minimum", {x, node.Input(2)});
  return {x};
}

/// clip(alpha * x + beta, 0, 1).
Expr HardSigmoid(NodeContext& node, const Expr& x, double alpha, double beta) {
  const Expr line = node.Op("add", {node.Op("multiply", {x, node.ScalarLike(alpha, x)}), node.ScalarLike(beta, x)});
  return node.Op("clip", {line}, {{"a_min", 0.0}, {"a_max", 1.0}});
}

Results ConvertHardSigmoid(NodeContext& node) {
  return {HardSigmoid(node, node.Input(0), node.Float("alpha", 0.2), node.Float("beta", 0.5))};
}

Results ConvertHardSwish(NodeContext& node) {
  return {node.Op("multiply", {node.Input(0), HardSigmoid(node, node.Input(0), 1.0 / 6, 0.5)})};
}

Results ConvertGelu(NodeContext& node) {
  const Expr x = node.Input(0);
  if (node.OneOf("approximate", "none", {"none", "tanh"}) == "tanh") return {GeluByTanh(node, x)};
  const Expr inner = node.Op("erf", {Scaled(node, x, M_SQRT1_2)});
  return {node.Op("multiply", {Scaled(node, x, 0.5), Shifted(node, inner, 1)})};
}

Results ConvertReciprocal(NodeContext& node) {
  return {node.Op("divide", {node.ScalarLike(1, node.Input(0)), node.Input(0)})};
}

Results ConvertMod(NodeContext& node) {
  return {node.Op(node.Int("fmod", 0) != 0 ? "mod" : "floor_mod", {node.Input(0), node.Input(1)})};
}

Results ConvertBitShift(NodeContext& node) {
  const bool is_left = node.OneOf("direction", "", {"LEFT", "RIGHT"}) == "LEFT";
  return {node.Op(is_left ? "left_shift" : "right_shift", {node.Input(0), node.Input(1)})};
}

Results ConvertIsInf(NodeContext& node) {
  const Expr x = node.Input(0);
  const Expr zero = node.ScalarLike(0, x);
  const bool negative = node.Int("detect_negative", 1) != 0;
  const bool positive = node.Int("detect_positive", 1) != 0;
  const Expr is_infinite = node.Op("isinf", {x});
  if (negative && positive) return {is_infinite};
  if (!negative && !positive) return {node.Op("logical_and", {is_infinite, MakeScalar(0, kBool)})};
  return {node.Op("logical_and", {is_infinite, node.Op(positive ? "greater" : "less", {x, zero})})};
}

// ---- reductions ----

/// Axes from the attribute (older opsets) or the second input; None: all. `noop`: an absence of axes means no
/// reduction.
AttrValue AxesToReduce(NodeContext& node, bool* noop) {
  *noop = false;
  V axes = node.Ints("axes", {});
  if (!node.HasAttr("axes") && node.HasInput(1)) axes = node.ConstantInts(1);
  if (!axes.empty()) return axes;
  *noop = node.Int("noop_with_empty_axes", 0) != 0;
  return {};
}

Expr ReduceBy(NodeContext& node, const char* op, const Expr& x) {
  bool noop = false;
  const AttrValue axes = AxesToReduce(node, &noop);
  return noop ? x : node.Op(op, {x}, {{"axis", axes}, {"keepdims", node.Int("keepdims", 1) != 0}});
}

OnnxConverter Reduce(const char* op) {
  return [op](NodeContext& node) -> Results {
    const Expr x = node.Input(0);
    // The largest bool says whether any holds.
    if (node.TypeOf(x).dtype().is_bool()) return {ReduceBy(node, std::string_view(op) == "max" ? "any" : "all", x)};
    return {ReduceBy(node, op, x)};
  };
}

/// A sum of a function of the elements, and a function of the result.
OnnxConverter ReduceComposed(const char* before, const char* after) {
  return [before = std::string_view(before), after = std::string_view(after)](NodeContext& node) -> Results {
    Expr x = node.Input(0);
    const DataType dtype = node.TypeOf(x).dtype();
    if (before == "square") x = node.Op("multiply", {x, x});
    if (before == "abs") x = node.Op("abs", {x});
    x = ReduceBy(node, "sum", x);
    if (after.empty()) return {x};
    // Roots and logarithms of integers are computed as floats and cut off.
    if (dtype.is_integer()) x = node.Cast(x, kFloat64);
    return {node.Cast(node.Op(after, {x}), dtype)};
  };
}

/// log(sum(exp(x))) around the largest element, so that no element overflows.
Results ConvertLogSumExp(NodeContext& node) {
  const Expr input = node.Input(0);
  const DataType dtype = node.TypeOf(input).dtype();
  const Expr x = dtype.is_integer() ? node.Cast(input, kFloat64) : input;
  bool noop = false;
  const AttrValue axes = AxesToReduce(node, &noop);
  if (noop) return {input};
  const Expr largest = node.Op("max", {x}, {{"axis", axes}, {"keepdims", true}});
  // If all are minus infinity (or there are none), the shift is 0.
  const Expr shift = node.Op("where", {node.Op("isfinite", {largest}), largest, node.ScalarLike(0, largest)});
  const Expr terms = node.Op("exp", {node.Op("subtract", {x, shift})});
  Expr sum = node.Op("log", {node.Op("sum", {terms}, {{"axis", axes}, {"keepdims", true}})});
  sum = node.Op("add", {sum, shift});
  if (node.Int("keepdims", 1) == 0) {
    const Expr shaped = node.Op("sum", {x}, {{"axis", axes}});
    sum = node.Reshape(sum, node.SizesOf(shaped));
  }
  return {node.Cast(sum, dtype)};
}

OnnxConverter ArgReduce(const char* op) {
  return [op](NodeContext& node) -> Results {
    return {node.Op(op, {node.Input(0)},
                    {{"axis", std::vector<int64_t>{node.Int("axis", 0)}},
                     {"keepdims", node.Int("keepdims", 1) != 0},
                     {"select_last_index", node.Int("select_last_index", 0) != 0}})};
  };
}

}  // namespace

void AddMathConverters(OnnxConverters& converters) {
  using Pairs = std::initializer_list<std::pair<const char*, const char*>>;
  for (const auto& [onnx, relay] :
       Pairs{{"Sigmoid", "sigmoid"}, {"Tanh", "tanh"},   {"Exp", "exp"},     {"Log", "log"},     {"Sqrt", "sqrt"},
             {"Floor", "floor"},     {"Ceil", "ceil"},   {"Round", "round"}, {"Sin", "sin"},     {"Cos", "cos"},
             {"Tan", "tan"},         {"Asin", "asin"},   {"Acos", "acos"},   {"Atan", "atan"},   {"Sinh", "sinh"},
             {"Cosh", "cosh"},       {"Asinh", "asinh"}, {"Acosh", "acosh"}, {"Atanh", "atanh"}, {"IsNaN", "isnan"}}) {
    converters.Add(onnx, Unary(relay), "X: float -> Y");
  }
  for (const auto& [onnx, relay] :
       Pairs{{"Relu", "nn.relu"}, {"Erf", "erf"}, {"Neg", "negative"}, {"Abs", "abs"}, {"Sign", "sign"}}) {
    converters.Add(onnx, Unary(relay), "X: number -> Y");
  }
  converters.Add("Not", Unary("logical_not"), "X: bool -> Y");
  converters.Add("Equal", ConvertEqual, "A, B: same -> C", NarrowUse::kReads);
  for (const auto& [onnx, relay] : Pairs{{"Add", "add"},
                                         {"Sub", "subtract"},
                                         {"Mul", "multiply"},
                                         {"Div", "divide"},
                                         {"Less", "less"},
                                         {"LessOrEqual", "less_equal"},
                                         {"Greater", "greater"},
                                         {"GreaterOrEqual", "greater_equal"}}) {
    converters.Add(onnx, Binary(relay), "A: number, B: same -> C");
  }
  for (const auto& [onnx, relay] : Pairs{{"And", "logical_and"}, {"Or", "logical_or"}, {"Xor", "logical_xor"}}) {
    converters.Add(onnx, Binary(relay), "A: bool, B: same -> C");
  }
  for (const auto& [onnx, relay] :
       Pairs{{"BitwiseAnd", "bitwise_and"}, {"BitwiseOr", "bitwise_or"}, {"BitwiseXor", "bitwise_xor"}}) {
    converters.Add(onnx, Binary(relay), "A: int, B: same -> C");
  }
  converters.Add("Sum", Variadic("add"), "data_0+: float -> sum");
  converters.Add("Max", Variadic("maximum"), "data_0+: number -> max");
  converters.Add("Min", Variadic("minimum"), "data_0+: number -> min");
  converters.Add("Mean", Variadic("add", /*mean=*/true), "data_0+: float -> mean");
  converters.Add("Pow", ConvertPow, "X: number, Y: number -> Z");
  converters.Add("Clip", ConvertClip, "input: number, min?@11: same[0..1], max?@11: same[0..1] -> output");
  converters.Add("HardSigmoid", ConvertHardSigmoid, "X: float -> Y");
  converters.Add("HardSwish", ConvertHardSwish, "X: float -> Y");
  converters.Add("Gelu", ConvertGelu, "X: float -> Y");
  converters.Add("Reciprocal", ConvertReciprocal, "X: float -> Y");
  converters.Add("Mod", ConvertMod, "A: number, B: same -> C");
  converters.Add("BitShift", ConvertBitShift, "X: int, Y: same -> Z");
  converters.Add("IsInf", ConvertIsInf, "X: float -> Y");
  converters.Add("ReduceSum", Reduce("sum"), "data: number, axes?@13: int[0..1] -> reduced");
  converters.Add("ReduceMean", Reduce("mean"), "data: number, axes?@18: int[0..1] -> reduced");
  converters.Add("ReduceMax", Reduce("max"), "data, axes?@18: int[0..1] -> reduced");
  converters.Add("ReduceMin", Reduce("min"), "data, axes?@18: int[0..1] -> reduced");
  converters.Add("ReduceProd", Reduce("prod"), "data: number, axes?@18: int[0..1] -> reduced");
  converters.Add("ReduceSumSquare", ReduceComposed("square", ""), "data: number, axes?@18: int[0..1] -> reduced");
  converters.Add("ReduceL1", ReduceComposed("abs", ""), "data: number, axes?@18: int[0..1] -> reduced");
  converters.Add("ReduceL2", ReduceComposed("square", "sqrt"), "data: number, axes?@18: int[0..1] -> reduced");
  converters.Add("ReduceLogSum", ReduceComposed("", "log"), "data: number, axes?@18: int[0..1] -> reduced");
  converters.Add("ReduceLogSumExp", ConvertLogSumExp, "data: number, axes?@18: int[0..1] -> reduced");
  converters.Add("ArgMax", ArgReduce("argmax"), "data: number -> reduced");
  converters.Add("ArgMin", ArgReduce("argmin"), "data: number -> reduced");
  converters.Add("BitwiseNot", ConvertBitwiseNot, "X: int -> Y");
  converters.Add("Det", ConvertDet, "X: float[2..] -> Y");
}

}  // namespace collage
