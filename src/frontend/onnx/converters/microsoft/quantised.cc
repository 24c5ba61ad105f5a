// quantised.cc: operators of com.microsoft on 8-bit integers. Operators that rescale their result compute on
// dequantised tensors, between qnn.dequantize and qnn.quantize, as those of ONNX do.
#include <fmt/format.h>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/microsoft/microsoft.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// A zero point for tensors like `data`: `zero`, or 0.
Expr ZeroPointFor(NodeContext& node, const Expr& data, const Expr& zero) {
  return zero != nullptr ? node.Reshape(zero, {}) : node.ScalarLike(0, data);
}

Expr Dequantized(NodeContext& node, const Expr& data, const Expr& scale, const Expr& zero) {
  return node.Op("qnn.dequantize", {data, node.Reshape(scale, {}), ZeroPointFor(node, data, zero)},
                 {{"axis", -1}, {"out_dtype", kFloat32}});
}

/// `x` as elements of `like`'s type.
Expr Quantized(NodeContext& node, const Expr& x, const Expr& scale, const Expr& zero, const Expr& like) {
  return node.Op("qnn.quantize", {x, node.Reshape(scale, {}), ZeroPointFor(node, like, zero)},
                 {{"axis", -1}, {"out_dtype", node.TypeOf(like).dtype()}});
}

/// Inputs 0 to 2 dequantised, `compute` on them, and the result quantised by inputs 3 and 4.
Expr Between(NodeContext& node, const std::function<Expr(const Expr& x)>& compute) {
  const Expr data = node.Input(0);
  const Expr x = Dequantized(node, data, node.Input(1), node.InputOrNull(2));
  return Quantized(node, compute(x), node.Input(3), node.InputOrNull(4), data);
}

/// An operator of ONNX on dequantised data, under its attributes.
OnnxConverter Unary(const std::string& op) {
  return [op](NodeContext& node) -> Results {
    return {Between(node, [&](const Expr& x) { return node.ConvertAs(op, {x})[0]; })};
  };
}

/// As Unary; the attribute `channels_last` says how data lies.
OnnxConverter Pool(const std::string& op) {
  return [op](NodeContext& node) -> Results {
    const bool is_last = node.Int("channels_last", 0) != 0;
    return {Between(node, [&](const Expr& x) {
      const Expr result = node.ConvertAs(op, {is_last ? ChannelsFirst(node, x) : x})[0];
      return is_last ? ChannelsLast(node, result) : result;
    })};
  };
}

Results ConvertReduceMean(NodeContext& node) {
  return {Between(node, [&](const Expr& x) {
    return node.Op("mean", {x}, {{"axis", node.Ints("axes", {})}, {"keepdims", node.Int("keepdims", 1) != 0}});
  })};
}

/// The softmax of the opset that an attribute names.
Results ConvertSoftmax(NodeContext& node) {
  const int64_t opset = node.IntWithin("opset", 13, 1, 1000);
  return {Between(node, [&](const Expr& x) { return node.ConvertAs("Softmax", {x}, opset)[0]; })};
}

/// A, its scale and zero point, B, scale, zero point, the result's.
OnnxConverter Binary(const char* op) {
  return [op](NodeContext& node) -> Results {
    const Expr a = Dequantized(node, node.Input(0), node.Input(1), node.InputOrNull(2));
    const Expr b = Dequantized(node, node.Input(3), node.Input(4), node.InputOrNull(5));
    return {Quantized(node, node.Op(op, {a, b}), node.Input(6), node.InputOrNull(7), node.Input(0))};
  };
}

/// condition, x, scale, zero point, y, scale, zero point, the result's.
Results ConvertWhere(NodeContext& node) {
  const Expr x = Dequantized(node, node.Input(1), node.Input(2), node.InputOrNull(3));
  const Expr y = Dequantized(node, node.Input(4), node.Input(5), node.InputOrNull(6));
  const Expr chosen = node.Op("where", {node.Input(0), x, y});
  return {Quantized(node, chosen, node.Input(7), node.InputOrNull(8), node.Input(1))};
}

/// The result's scale and zero point, and these and the tensor for each part.
Results ConvertConcat(NodeContext& node) {
  if ((node.num_inputs() - 2) % 3 != 0) node.Invalid("inputs are no tensors with a scale and a zero point each");
  Results parts;
  for (size_t i = 2; i + 2 < node.num_inputs(); i += 3) {
    parts.push_back(Dequantized(node, node.Input(i), node.Input(i + 1), node.InputOrNull(i + 2)));
  }
  const int64_t axis = NormalAxis(node, node.Int("axis", 0), node.Rank(parts.at(0)));
  return {
      Quantized(node, Concatenate(node, std::move(parts), axis), node.Input(0), node.InputOrNull(1), node.Input(2))};
}

/// QLinearConv of ONNX, perhaps on data whose channels are last.
Results ConvertConv(NodeContext& node) {
  Results inputs = node.inputs();
  const bool is_last = node.Int("channels_last", 0) != 0;
  if (is_last) inputs[0] = ChannelsFirst(node, inputs[0]);
  const Expr result = node.ConvertAs("QLinearConv", std::move(inputs))[0];
  return {is_last ? ChannelsLast(node, result) : result};
}

/// A vector that belongs to the columns of a matrix, or one number.
Expr PerColumn(NodeContext& node, const Expr& x) { return node.SizesOf(x).Product() == 1 ? node.Reshape(x, {}) : x; }

/// The product of 8-bit matrices as int32, their zero points subtracted.
Expr IntegerProduct(NodeContext& node, const Expr& a, const Expr& b, const Expr& a_zero, const Expr& b_zero) {
  return node.ConvertAs("MatMulInteger", {a, b, a_zero == nullptr ? nullptr : node.Reshape(a_zero, {}),
                                          b_zero == nullptr ? nullptr : PerColumn(node, b_zero)})[0];
}

/// The product as floats; `bias` may be null.
Expr ScaledProduct(NodeContext& node, const Expr& product, const Expr& a_scale, const Expr& b_scale, const Expr& bias) {
  const Expr scale = node.Op("multiply", {node.Reshape(a_scale, {}), PerColumn(node, b_scale)});
  const Expr result = node.Op("multiply", {node.Cast(product, node.TypeOf(a_scale).dtype()), scale});
  return bias == nullptr ? result : node.Op("add", {result, bias});
}

/// A, B, scale of B, zero point, bias: A is quantised to the range of its elements.
Results ConvertDynamicQuantizeMatMul(NodeContext& node) {
  const Results a = node.ConvertAs("DynamicQuantizeLinear", {node.Input(0)});
  const Expr product = IntegerProduct(node, a[0], node.Input(1), a[2], node.InputOrNull(3));
  return {ScaledProduct(node, product, a[1], node.Input(2), node.InputOrNull(4))};
}

/// A, B, their scales, their zero points, bias.
Results ConvertMatMulIntegerToFloat(NodeContext& node) {
  const Expr product = IntegerProduct(node, node.Input(0), node.Input(1), node.InputOrNull(4), node.InputOrNull(5));
  return {ScaledProduct(node, product, node.Input(2), node.Input(3), node.InputOrNull(6))};
}

/// A, scale, zero point, B, scale, zero point, C of int32, the result's scale and zero point; floats without these.
Results ConvertGemm(NodeContext& node) {
  const auto matrix = [&](const Expr& x, bool is_transposed) { return is_transposed ? Transpose(node, x, {1, 0}) : x; };
  const Expr a = matrix(node.Input(0), node.Int("transA", 0) != 0),
             b = matrix(node.Input(3), node.Int("transB", 0) != 0);
  Expr product = IntegerProduct(node, a, b, node.InputOrNull(2), node.InputOrNull(5));
  if (node.HasInput(6)) product = node.Op("add", {product, node.Input(6)});
  Expr result = ScaledProduct(node, product, node.Input(1), node.Input(4), nullptr);
  if (node.Float("alpha", 1) != 1) result = Scaled(node, result, node.Float("alpha", 1));
  if (!node.HasInput(7)) return {result};
  return {
      Quantized(node, result, node.Input(7), node.InputOrNull(8), node.HasInput(8) ? node.Input(8) : node.Input(0))};
}

/// Weights [directions, inputs, gates] of 8 bits, one scale for a direction or for a gate's column, as an LSTM of ONNX
/// has them: floats [directions, gates, inputs].
Expr LayerWeights(NodeContext& node, size_t weights, size_t scale) {
  const Expr data = node.Cast(node.Input(weights), kFloat32);
  const Sizes shape = node.SizesOf(data);
  const auto spread = [&](const Expr& x) {
    const bool is_per_column = node.SizesOf(x).Product() == shape[0] * shape[2];
    return node.Reshape(x, {shape[0], 1, is_per_column ? shape[2] : SymbolicSize(1)});
  };
  const Expr zero = node.Cast(node.Input(scale + 1), kFloat32);
  const Expr shifted = node.Op("subtract", {data, spread(zero)});
  return Transpose(node, node.Op("multiply", {shifted, spread(node.Input(scale))}), {0, 2, 1});
}

/// An LSTM with weights of 8 bits. ONNX Runtime also rounds the data of every product to 8 bits, by its range; here it
/// stays as it is, so that results are nearer to those of the layer that was quantised.
Results ConvertDynamicQuantizeLstm(NodeContext& node) {
  const Expr w = LayerWeights(node, 1, 8), r = LayerWeights(node, 2, 10);
  return node.ConvertAs("LSTM", {node.Input(0), w, r, node.InputOrNull(3), node.InputOrNull(4), node.InputOrNull(5),
                                 node.InputOrNull(6), node.InputOrNull(7)});
}

}  // namespace

void AddMicrosoftQuantised(OnnxConverters& converters) {
  const auto add = [&](const std::string& name, const OnnxConverter& convert, std::string_view signature) {
    converters.Add("com.microsoft." + name, convert, signature);
  };
  constexpr const char* kUnary =
      "X: int, X_scale: float[0..1], X_zero_point?: same[0..1], Y_scale: float[0..1], Y_zero_point?: same[0..1] -> Y";
  add("QLinearSigmoid", Unary("Sigmoid"), kUnary);
  add("QLinearLeakyRelu", Unary("LeakyRelu"), kUnary);
  add("QLinearSoftmax", ConvertSoftmax, kUnary);
  add("QLinearReduceMean", ConvertReduceMean, kUnary);
  add("QLinearAveragePool", Pool("AveragePool"), kUnary);
  add("QLinearGlobalAveragePool", Pool("GlobalAveragePool"), kUnary);
  for (const char* op : {"Add", "Mul"}) {
    add(fmt::format("QLinear{}", op), Binary(std::string_view(op) == "Add" ? "add" : "multiply"),
        "A: int, A_scale: float[0..1], A_zero_point?: same[0..1], B: same, B_scale: float[0..1], B_zero_point?: "
        "same[0..1], C_scale: float[0..1], C_zero_point?: same[0..1] -> C");
  }
  add("QLinearWhere", ConvertWhere,
      "condition: bool, X: int, x_scale: float[0..1], x_zero_point: int[0..1], Y: int, y_scale: float[0..1], "
      "y_zero_point: int[0..1], z_scale: float[0..1], z_zero_point: int[0..1] -> Z");
  add("QLinearConcat", ConvertConcat, "Y_scale: float[0..1], Y_zero_point: int[0..1], inputs+ -> Y");
  add("QLinearConv", ConvertConv,
      "x: int[3..5+], x_scale: float[0..1], x_zero_point: same[0..1], w: int[3..5+], w_scale: float[0..1], "
      "w_zero_point: int[0..1], y_scale: float[0..1], y_zero_point: int[0..1], B?: int[1] -> y");
  add("QGemm", ConvertGemm,
      "A: int[2], a_scale: float[0..1], a_zero_point: same[0..1], B: int[2], b_scale: float[0..1], b_zero_point: "
      "int[0..1], C?: int[0..2], y_scale?: float[0..1], y_zero_point?: int[0..1] -> Y");
  add("DynamicQuantizeMatMul", ConvertDynamicQuantizeMatMul,
      "A: float[1..], B: int[1..], b_scale: float[0..1], b_zero_point?: int[0..1], bias?: float[1] -> Y");
  add("MatMulIntegerToFloat", ConvertMatMulIntegerToFloat,
      "A: int[1..], B: int[1..], a_scale: float[0..1], b_scale: float[0..1], a_zero_point?: int[0..1], b_zero_point?: "
      "int[0..1], bias?: float[1] -> Y");
  add("DynamicQuantizeLSTM", ConvertDynamicQuantizeLstm,
      "X: float[3], W: int[3], R: int[3], B?: float[2], sequence_lens?: int[1], initial_h?: float[3], initial_c?: "
      "float[3], P?: float[2], W_scale: float, W_zero_point: int, R_scale: float, R_zero_point: int -> Y?, Y_h?, Y_c?");
  add("QuantizeLinear", AsInOnnx("QuantizeLinear"), "x: number, y_scale: number, y_zero_point?: int -> y");
  add("DequantizeLinear", AsInOnnx("DequantizeLinear"), "x: int, x_scale: float, x_zero_point?: same -> y");
}

}  // namespace collage
