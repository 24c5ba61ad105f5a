// math.cc: element-wise operators, reductions and matrix products of ONNX.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "frontend/onnx/builders.h"

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
  Expr exponent = node.Input(1);
  const DataType dtype = node.TypeOf(node.Input(0)).dtype();
  if (node.TypeOf(exponent).dtype() != dtype) exponent = node.Op("cast", {exponent}, {{"dtype", dtype}});
  return {node.Op("power", {node.Input(0), exponent})};
}

Results ConvertClip(NodeContext& node) {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  if (node.opset() < 11) {
    low = node.Float("min", low);
    high = node.Float("max", high);
  } else {
    if (node.HasInput(1)) low = node.Constant(1).At(0);
    if (node.HasInput(2)) high = node.Constant(2).At(0);
  }
  return {node.Op("clip", {node.Input(0)}, {{"a_min", low}, {"a_max", high}})};
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
  Expr inner;
  if (node.String("approximate", "none") == "tanh") {
    const Expr cube = node.Op("multiply", {node.Op("multiply", {x, x}), x});
    const Expr sum = node.Op("add", {x, node.Op("multiply", {cube, node.ScalarLike(0.044715, x)})});
    inner = node.Op("tanh", {node.Op("multiply", {sum, node.ScalarLike(std::sqrt(2 / M_PI), x)})});
  } else {
    inner = node.Op("erf", {node.Op("multiply", {x, node.ScalarLike(M_SQRT1_2, x)})});
  }
  const Expr half = node.Op("multiply", {x, node.ScalarLike(0.5, x)});
  return {node.Op("multiply", {half, node.Op("add", {inner, node.ScalarLike(1, x)})})};
}

Results ConvertElu(NodeContext& node) {
  const Expr x = node.Input(0);
  const Expr zero = node.ScalarLike(0, x);
  const Expr below = node.Op("subtract", {node.Op("exp", {node.Op("minimum", {x, zero})}), node.ScalarLike(1, x)});
  return {node.Op(
      "add", {node.Op("nn.relu", {x}), node.Op("multiply", {below, node.ScalarLike(node.Float("alpha", 1.0), x)})})};
}

Results ConvertSoftplus(NodeContext& node) {
  const Expr x = node.Input(0);
  return {node.Op("log", {node.Op("add", {node.Op("exp", {x}), node.ScalarLike(1, x)})})};
}

Results ConvertReciprocal(NodeContext& node) {
  return {node.Op("divide", {node.ScalarLike(1, node.Input(0)), node.Input(0)})};
}

Results ConvertMod(NodeContext& node) {
  return {node.Op(node.Int("fmod", 0) != 0 ? "mod" : "floor_mod", {node.Input(0), node.Input(1)})};
}

Results ConvertBitShift(NodeContext& node) {
  return {
      node.Op(node.String("direction", "") == "LEFT" ? "left_shift" : "right_shift", {node.Input(0), node.Input(1)})};
}

Results ConvertIsInf(NodeContext& node) { return {node.Op("isinf", {node.Input(0)})}; }

// ---- reductions ----

/// Axes from the attribute (older opsets) or the second input; none: all.
AttrValue ReduceAxes(NodeContext& node, bool* none_means_nothing) {
  *none_means_nothing = node.Int("noop_with_empty_axes", 0) != 0;
  if (node.HasAttr("axes")) return node.Ints("axes", {});
  if (node.HasInput(1)) {
    const std::vector<int64_t> axes = node.ConstantInts(1);
    if (!axes.empty()) return axes;
  }
  return {};
}

OnnxConverter Reduce(const char* op) {
  return [op](NodeContext& node) -> Results {
    bool noop = false;
    const AttrValue axes = ReduceAxes(node, &noop);
    if (axes.is_none() && noop) return {node.Input(0)};
    return {node.Op(op, {node.Input(0)}, {{"axis", axes}, {"keepdims", node.Int("keepdims", 1) != 0}})};
  };
}

/// A reduction of a function of the elements, and a function of the result.
OnnxConverter ReduceComposed(const char* before, const char* after) {
  return [before, after](NodeContext& node) -> Results {
    bool noop = false;
    const AttrValue axes = ReduceAxes(node, &noop);
    Expr x = node.Input(0);
    if (std::string_view(before) == "square") x = node.Op("multiply", {x, x});
    if (std::string_view(before) == "abs") x = node.Op("abs", {x});
    if (std::string_view(before) == "exp") x = node.Op("exp", {x});
    x = node.Op("sum", {x}, {{"axis", axes}, {"keepdims", node.Int("keepdims", 1) != 0}});
    if (std::string_view(after) != "") x = node.Op(after, {x});
    return {x};
  };
}

OnnxConverter ArgReduce(const char* op) {
  return [op](NodeContext& node) -> Results {
    return {node.Op(op, {node.Input(0)},
                    {{"axis", std::vector<int64_t>{node.Int("axis", 0)}},
                     {"keepdims", node.Int("keepdims", 1) != 0},
                     {"select_last_index", node.Int("select_last_index", 0) != 0}})};
  };
}

Results ConvertCumSum(NodeContext& node) {
  if (node.Int("reverse", 0) != 0) node.Unsupported("reverse cumulative sums");
  return {node.Op("cumsum", {node.Input(0)},
                  {{"axis", node.ConstantInts(1).at(0)}, {"exclusive", node.Int("exclusive", 0) != 0}})};
}

// ---- matrix products ----

/// `matrix` with its two dimensions exchanged; constants are exchanged now, dequantised ones before they are
/// dequantised.
Expr TransposeMatrix(NodeContext& node, const Expr& matrix) {
  const V axes{1, 0};
  const CallNode* call = As<CallNode>(matrix);
  if (call != nullptr && call->op() != nullptr && call->op()->name == "qnn.dequantize" &&
      As<ConstantNode>(call->args()[0])) {
    Attrs attrs = call->attrs();
    const int64_t axis = attrs.Int("axis");
    if (axis >= 0) attrs.Set("axis", 1 - axis);
    return node.Op("qnn.dequantize", {Transpose(node, call->args()[0], axes), call->args()[1], call->args()[2]}, attrs);
  }
  return Transpose(node, matrix, axes);
}

Results ConvertGemm(NodeContext& node) {
  Expr a = node.Input(0);
  Expr b = node.Input(1);
  if (node.Int("transA", 0) != 0) a = TransposeMatrix(node, a);
  if (node.Int("transB", 0) == 0) b = TransposeMatrix(node, b);
  const double alpha = node.Float("alpha", 1);
  const double beta = node.Float("beta", 1);
  if (alpha != 1) b = node.Op("multiply", {b, node.ScalarLike(alpha, b)});
  Expr result = node.Op("nn.dense", {a, b});
  if (node.HasInput(2) && beta != 0) {
    Expr c = node.Input(2);
    if (beta != 1) c = node.Op("multiply", {c, node.ScalarLike(beta, c)});
    result = node.Op("add", {result, c});
  }
  return {result};
}

/// A rank-3 view [batch, rows, columns] of `x` after broadcasting its leading dimensions to `batch`.
Expr BatchOf(NodeContext& node, Expr x, const Shape& batch) {
  const Shape shape = node.ShapeOf(x);
  Shape wanted = batch;
  wanted.insert(wanted.end(), shape.end() - 2, shape.end());
  int64_t count = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
  const int64_t all = std::accumulate(batch.begin(), batch.end(), int64_t{1}, std::multiplies<>());
  if (count != 1 && count != all) x = node.Op("broadcast_to", {x}, {{"shape", wanted}});
  return node.Reshape(x, {count == 1 ? 1 : all, *(shape.end() - 2), shape.back()});
}

/// The operand of a transpose that exchanges the last two dimensions only; null for anything else.
Expr UndoneTranspose(const Expr& x) {
  const CallNode* call = As<CallNode>(x);
  if (call == nullptr || call->op() == nullptr || call->op()->name != "transpose") return nullptr;
  const std::vector<int64_t> axes = call->attrs().Ints("axes");
  const auto rank = static_cast<int64_t>(axes.size());
  if (rank < 2) return nullptr;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t wanted = i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i;
    if (axes[static_cast<size_t>(i)] != wanted) return nullptr;
  }
  return call->args()[0];
}

Results ConvertMatMul(NodeContext& node) { return {MultiplyMatrices(node, node.Input(0), node.Input(1))}; }

}  // namespace

Expr MultiplyMatrices(NodeContext& node, Expr a, Expr b) {
  const bool a_is_vector = node.Rank(a) == 1;
  const bool b_is_vector = node.Rank(b) == 1;
  if (a_is_vector) a = node.Reshape(a, {1, node.ShapeOf(a)[0]});
  if (b_is_vector) b = node.Reshape(b, {node.ShapeOf(b)[0], 1});
  const Shape a_shape = node.ShapeOf(a);
  const Shape b_shape = node.ShapeOf(b);
  Shape result_shape;
  Expr result;
  if (b_shape.size() == 2) {
    // Rows of all batches times one matrix: a dense layer.
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < a_shape.size(); ++i) rows *= a_shape[i];
    const Expr flat = node.Reshape(a, {rows, a_shape.back()});
    const Expr plain = UndoneTranspose(b);
    result = node.Op("nn.dense", {flat, plain ? plain : TransposeMatrix(node, b)});
    result_shape.assign(a_shape.begin(), a_shape.end() - 1);
    result_shape.push_back(b_shape.back());
  } else {
    Shape batch;
    const size_t rank = std::max(a_shape.size(), b_shape.size());
    for (size_t i = 0; i + 2 < rank; ++i) {
      const int64_t x = i + a_shape.size() < rank ? 1 : a_shape[i + a_shape.size() - rank];
      const int64_t y = i + b_shape.size() < rank ? 1 : b_shape[i + b_shape.size() - rank];
      if (x != y && x != 1 && y != 1) node.Invalid("batch dimensions do not broadcast");
      batch.push_back(std::max(x, y));
    }
    const Expr plain = UndoneTranspose(b);
    result = node.Op("nn.batch_matmul", {BatchOf(node, a, batch), BatchOf(node, plain ? plain : b, batch)},
                     {{"transpose_b", plain != nullptr}});
    result_shape = batch;
    result_shape.push_back(*(a_shape.end() - 2));
    result_shape.push_back(b_shape.back());
  }
  if (b_is_vector) result_shape.pop_back();
  if (a_is_vector) result_shape.erase(result_shape.end() - (b_is_vector ? 1 : 2));
  return node.Reshape(result, result_shape);
}

void AddMathConverters(OnnxConverters& converters) {
  for (const auto& [onnx, relay] : std::initializer_list<std::pair<const char*, const char*>>{
           {"Relu", "nn.relu"}, {"Sigmoid", "sigmoid"}, {"Tanh", "tanh"},    {"Exp", "exp"},     {"Log", "log"},
           {"Sqrt", "sqrt"},    {"Erf", "erf"},         {"Neg", "negative"}, {"Abs", "abs"},     {"Floor", "floor"},
           {"Ceil", "ceil"},    {"Round", "round"},     {"Sign", "sign"},    {"Sin", "sin"},     {"Cos", "cos"},
           {"Tan", "tan"},      {"Asin", "asin"},       {"Acos", "acos"},    {"Atan", "atan"},   {"Sinh", "sinh"},
           {"Cosh", "cosh"},    {"Asinh", "asinh"},     {"Acosh", "acosh"},  {"Atanh", "atanh"}, {"Not", "logical_not"},
           {"IsNaN", "isnan"}}) {
    converters[onnx] = Unary(relay);
  }
  for (const auto& [onnx, relay] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Add", "add"},
                                                                  {"Sub", "subtract"},
                                                                  {"Mul", "multiply"},
                                                                  {"Div", "divide"},
                                                                  {"Equal", "equal"},
                                                                  {"Less", "less"},
                                                                  {"LessOrEqual", "less_equal"},
                                                                  {"Greater", "greater"},
                                                                  {"GreaterOrEqual", "greater_equal"},
                                                                  {"And", "logical_and"},
                                                                  {"Or", "logical_or"},
                                                                  {"Xor", "logical_xor"},
                                                                  {"BitwiseAnd", "bitwise_and"},
                                                                  {"BitwiseOr", "bitwise_or"},
                                                                  {"BitwiseXor", "bitwise_xor"}}) {
    converters[onnx] = Binary(relay);
  }
  converters["Sum"] = Variadic("add");
  converters["Max"] = Variadic("maximum");
  converters["Min"] = Variadic("minimum");
  converters["Mean"] = Variadic("add", /*mean=*/true);
  converters["Pow"] = ConvertPow;
  converters["Clip"] = ConvertClip;
  converters["HardSigmoid"] = ConvertHardSigmoid;
  converters["HardSwish"] = ConvertHardSwish;
  converters["Gelu"] = ConvertGelu;
  converters["Elu"] = ConvertElu;
  converters["Softplus"] = ConvertSoftplus;
  converters["Reciprocal"] = ConvertReciprocal;
  converters["Mod"] = ConvertMod;
  converters["BitShift"] = ConvertBitShift;
  converters["IsInf"] = ConvertIsInf;
  for (const auto& [onnx, relay] : std::initializer_list<std::pair<const char*, const char*>>{{"ReduceSum", "sum"},
                                                                                              {"ReduceMean", "mean"},
                                                                                              {"ReduceMax", "max"},
                                                                                              {"ReduceMin", "min"},
                                                                                              {"ReduceProd", "prod"}}) {
    converters[onnx] = Reduce(relay);
  }
  converters["ReduceSumSquare"] = ReduceComposed("square", "");
  converters["ReduceL1"] = ReduceComposed("abs", "");
  converters["ReduceL2"] = ReduceComposed("square", "sqrt");
  converters["ReduceLogSum"] = ReduceComposed("", "log");
  converters["ReduceLogSumExp"] = ReduceComposed("exp", "log");
  converters["ArgMax"] = ArgReduce("argmax");
  converters["ArgMin"] = ArgReduce("argmin");
  converters["CumSum"] = ConvertCumSum;
  converters["Gemm"] = ConvertGemm;
  converters["MatMul"] = ConvertMatMul;
}

}  // namespace collage
