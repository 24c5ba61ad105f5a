// quantised.cc: quantised operators of ONNX. Contractions of integers become contractions between qnn.dequantize and
// qnn.quantize where ONNX rescales the result, which is the form that toolchains make 8-bit kernels from, and integer
// contractions where it does not.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/builders.h"
#include "frontend/onnx/narrow_types.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// `axis` counted from the front, for data that has it; a single scale belongs to no axis.
int64_t ScaleAxis(NodeContext& node, const Expr& data, const Expr& scale, int64_t axis) {
  const int rank = node.Rank(data);
  if (NumElements(node.ShapeOf(scale)) == 1 && (axis < -rank || axis >= rank)) return -1;
  if (axis < -rank || axis >= rank) node.Invalid(fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

/// A zero point for `scale`: the input, or zeros of `dtype`.
Expr ZeroPoint(NodeContext& node, size_t input, const Expr& scale, DataType dtype) {
  if (node.HasInput(input)) return node.Input(input);
  return Filled(0, node.ShapeOf(scale), dtype);
}

/// Whether scales are given per block along an axis: of the data's rank, not one per tensor or per channel.
bool IsBlocked(NodeContext& node, const Expr& data, const Expr& scale) {
  return node.IntWithin("block_size", 0, 0, INT32_MAX) > 0 ||
         (node.Rank(scale) > 1 && node.Rank(scale) == node.Rank(data));
}

/// A scale or zero point per block as one per element of the data.
Expr PerElement(NodeContext& node, const Expr& data, const Expr& parameter, int64_t axis) {
  const Shape shape = node.ShapeOf(data);
  if (axis < 0) node.Invalid(fmt::format("axis {} is out of range for rank {}", node.Int("axis", 1), shape.size()));
  const auto at = static_cast<size_t>(axis);
  const Shape blocks = node.ShapeOf(parameter);
  if (blocks.size() != shape.size())
    node.Invalid(
        fmt::format("scales per block have rank {}, the data's rank {} is wanted", blocks.size(), shape.size()));
  int64_t block = node.Int("block_size", 0);
  if (block == 0) block = (shape[at] + blocks[at] - 1) / std::max<int64_t>(blocks[at], 1);
  Expr result = node.Op("repeat", {parameter}, {{"repeats", block}, {"axis", axis}});
  if (node.ShapeOf(result)[at] != shape[at]) {
    if (node.ShapeOf(result)[at] < shape[at]) node.Invalid("there are fewer blocks of scales than of data");
    result = node.Op("strided_slice", {result}, {{"begin", V{0}}, {"end", V{shape[at]}}, {"axes", V{axis}}});
  }
  return result;
}

/// Element-wise quantisation with scales of the data's shape.
Expr QuantizeElements(NodeContext& node, const Expr& data, const Expr& scale, const Expr& zero, DataType dtype) {
  const DataType type = node.TypeOf(data).dtype();
  const Expr quotient = node.Op("round", {node.Op("divide", {data, node.Cast(scale, type)})});
  const Expr shifted = node.Op("add", {quotient, node.Cast(zero, type)});
  const bool is_signed = dtype.code == DataType::Code::kInt;
  const double high = std::ldexp(1.0, dtype.bits - (is_signed ? 1 : 0)) - 1;
  const double low = is_signed ? -high - 1 : 0;
  return node.Cast(node.Op("clip", {shifted}, {{"a_min", low}, {"a_max", high}}), dtype);
}

/// Input 1, which may be of powers of two.
Expr ScaleInput(NodeContext& node) {
  const NarrowType* narrow = node.NarrowOf(1);
  const Expr scale = narrow == nullptr ? node.Input(1) : Widen(node, node.Input(1), *narrow);
  const DataType dtype = node.TypeOf(scale).dtype();
  if (!dtype.is_floating()) node.Unsupported(fmt::format("a scale of {}", dtype.ToString()));
  return scale;
}

/// A scale or zero point in a shape that is broadcast to the data's.
Expr Spread(NodeContext& node, const Expr& data, const Expr& parameter, int64_t axis) {
  if (IsBlocked(node, data, parameter)) return PerElement(node, data, parameter, axis);
  const int64_t count = NumElements(node.ShapeOf(parameter));
  if (count == 1) return node.Reshape(parameter, Sizes());
  Shape shape(static_cast<size_t>(node.Rank(data) - axis), 1);
  shape[0] = count;
  return node.Reshape(parameter, shape);
}

/// The zero point of floats, as float32; null where there is none, or zeros.
Expr FloatZeroPoint(NodeContext& node, const NarrowType& type) {
  if (!node.HasInput(2)) return nullptr;
  const Expr zero = Widen(node, node.Input(2), type);
  if (const ConstantNode* known = As<ConstantNode>(zero)) {
    bool is_zero = true;
    for (int64_t i = 0; i < known->value().num_elements(); ++i) is_zero = is_zero && known->value().At(i) == 0;
    if (is_zero) return nullptr;
  }
  return zero;
}

/// data / scale + zero point, rounded to a floating type.
Expr QuantizeToFloats(NodeContext& node, const Expr& scale, int64_t axis, const NarrowType& type) {
  const Expr data = node.Input(0);
  Expr result = node.Op("divide", {node.Cast(data, kFloat32), node.Cast(Spread(node, data, scale, axis), kFloat32)});
  // Zero is added, too: -0 becomes 0.
  const Expr zero = FloatZeroPoint(node, type);
  result = node.Op("add", {result, zero == nullptr ? node.Scalar(0, kFloat32) : Spread(node, data, zero, axis)});
  return Narrow(node, result, type, {.saturates = node.Int("saturate", 1) != 0});
}

/// (data - zero point) * scale, of a floating type.
Expr DequantizeFloats(NodeContext& node, const Expr& scale, int64_t axis, const NarrowType& type) {
  Expr result = Widen(node, node.Input(0), type);
  if (const Expr zero = FloatZeroPoint(node, type)) {
    result = node.Op("subtract", {result, Spread(node, result, zero, axis)});
  }
  return node.Op("multiply", {result, node.Cast(Spread(node, result, scale, axis), kFloat32)});
}

/// QuantizeLinear to `dtype`.
Expr QuantizeTo(NodeContext& node, const Expr& scale, int64_t axis, DataType dtype) {
  const Expr data = node.Input(0);
  const Expr zero = ZeroPoint(node, 2, scale, dtype);
  if (IsBlocked(node, data, scale)) {
    return QuantizeElements(node, data, PerElement(node, data, scale, axis), PerElement(node, data, zero, axis), dtype);
  }
  // int32 data with float scales: the quotient is a float.
  const Expr x = node.TypeOf(data).dtype().is_floating() ? data : node.Cast(data, node.TypeOf(scale).dtype());
  return node.Op("qnn.quantize", {x, scale, zero}, {{"axis", axis}, {"out_dtype", dtype}});
}

Results ConvertQuantizeLinear(NodeContext& node) {
  const Expr scale = ScaleInput(node);
  const int64_t axis = ScaleAxis(node, node.Input(0), scale, node.Int("axis", 1));
  const int64_t output = node.Int("output_dtype", 0);
  const NarrowType* narrow = node.HasInput(2) ? node.NarrowOf(2) : FindNarrowType(static_cast<int>(output));
  node.SetNarrow(0, narrow);
  if (narrow != nullptr && narrow->is_floating) return {QuantizeToFloats(node, scale, axis, *narrow)};
  DataType dtype = kUInt8;
  if (node.HasInput(2)) {
    dtype = node.TypeOf(node.Input(2)).dtype();
  } else if (output != 0) {
    dtype = narrow != nullptr ? narrow->storage() : node.DTypeOf(output);
  }
  if (!dtype.is_integer()) node.Unsupported("quantising to " + dtype.ToString());
  const Expr result = QuantizeTo(node, scale, axis, dtype);
  if (narrow == nullptr) return {result};
  return {node.Op("clip", {result}, {{"a_min", double(narrow->low())}, {"a_max", double(narrow->high())}})};
}

/// Elements [K, N] as [N, K].
Tensor Exchanged(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  const Tensor made = Tensor::Empty({columns, rows}, matrix.dtype());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) CopyElement(matrix, i * columns + j, made, j * rows + i);
  }
  return made;
}

/// A known matrix whose blocks divide `axis`, dequantised block by block: blocks are rows, which a reshape joins, so
/// that a product may read them packed (pass PackWeights). Null for others.
Expr DequantizeBlocks(NodeContext& node, const Expr& scale, const Expr& zero, int64_t axis) {
  const ConstantNode* known[] = {As<ConstantNode>(node.Input(0)), As<ConstantNode>(scale), As<ConstantNode>(zero)};
  if (!std::ranges::all_of(known, [](const ConstantNode* constant) { return constant != nullptr; })) return nullptr;
  const Shape shape = known[0]->value().shape(), blocks = known[1]->value().shape();
  const bool is_matrix = shape.size() == 2 && blocks.size() == 2 && known[2]->value().shape() == blocks;
  if (!is_matrix || known[0]->value().dtype().bits != 8 || known[1]->value().dtype() != kFloat32) return nullptr;
  const auto at = static_cast<size_t>(axis);
  const int64_t block = node.Int("block_size", 0);
  if (block <= 0 || shape[1 - at] != blocks[1 - at] || shape[at] != blocks[at] * block) return nullptr;
  if (NumElements(shape) == 0) return nullptr;
  const auto in_rows = [&](size_t i, const Shape& wanted) {
    const Tensor& value = known[i]->value();
    return MakeConstant((at == 0 ? Exchanged(value) : value).Reshaped(wanted));
  };
  const int64_t count = NumElements(blocks);
  const Expr rows = node.Op("qnn.dequantize", {in_rows(0, {count, block}), in_rows(1, {count}), in_rows(2, {count})},
                            {{"axis", 0}, {"out_dtype", kFloat32}});
  const Expr joined = node.Op("reshape", {rows}, {{"newshape", V{shape[1 - at], shape[at]}}});
  return at == 0 ? Transpose(node, joined, {1, 0}) : joined;
}

Results ConvertDequantizeLinear(NodeContext& node) {
  const Expr data = node.Input(0);
  const Expr scale = ScaleInput(node);
  const DataType dtype = node.TypeOf(data).dtype();
  const Expr zero = ZeroPoint(node, 2, scale, dtype);
  const int64_t axis = ScaleAxis(node, data, scale, node.Int("axis", 1));
  const DataType wanted =
      node.Int("output_dtype", 0) != 0 ? node.DTypeOf(node.Int("output_dtype", 0)) : node.TypeOf(scale).dtype();
  if (const NarrowType* narrow = node.NarrowOf(0); narrow != nullptr && narrow->is_floating) {
    return {node.Cast(DequantizeFloats(node, scale, axis, *narrow), wanted)};
  }
  if (IsBlocked(node, data, scale)) {
    const Expr blocks = wanted == kFloat32 ? DequantizeBlocks(node, scale, zero, axis) : nullptr;
    if (blocks) return {blocks};
    const Expr shifted =
        node.Op("subtract", {node.Cast(data, kFloat32), node.Cast(PerElement(node, data, zero, axis), kFloat32)});
    const Expr scaled = node.Op("multiply", {shifted, node.Cast(PerElement(node, data, scale, axis), kFloat32)});
    return {node.Cast(scaled, wanted)};
  }
  return {node.Op("qnn.dequantize", {data, scale, zero}, {{"axis", axis}, {"out_dtype", wanted}})};
}

/// Range of the data with 0 in it, divided in 255 steps.
Results ConvertDynamicQuantizeLinear(NodeContext& node) {
  const Expr data = node.Input(0);
  const Expr zero = node.ScalarLike(0, data);
  const Expr low = node.Op("minimum", {node.Op("min", {data}), zero});
  const Expr high = node.Op("maximum", {node.Op("max", {data}), zero});
  const Expr scale = node.Op("divide", {node.Op("subtract", {high, low}), node.ScalarLike(255, data)});
  const Expr start = node.Op("divide", {node.Op("subtract", {zero, low}), scale});
  const Expr point =
      node.Cast(node.Op("round", {node.Op("clip", {start}, {{"a_min", 0.0}, {"a_max", 255.0}})}), kUInt8);
  return {node.Op("qnn.quantize", {data, scale, point}, {{"axis", -1}, {"out_dtype", kUInt8}}), scale, point};
}

// ---- contractions ----

Expr Dequantized(NodeContext& node, size_t input, int64_t axis) {
  return node.Op("qnn.dequantize", {node.Input(input), node.Input(input + 1), node.Input(input + 2)},
                 {{"axis", axis}, {"out_dtype", kFloat32}});
}

/// Scale and zero point of a matrix product's operand: per tensor, or one per row (left) or column (right).
Expr DequantizedMatrix(NodeContext& node, size_t input, bool is_left) {
  const int rank = node.Rank(node.Input(input));
  if (node.Rank(node.Input(input + 1)) <= 1) return Dequantized(node, input, rank - (is_left ? 2 : 1));
  const Expr shifted =
      node.Op("subtract", {node.Cast(node.Input(input), kFloat32), node.Cast(node.Input(input + 2), kFloat32)});
  return node.Op("multiply", {shifted, node.Cast(node.Input(input + 1), kFloat32)});
}

Expr Requantized(NodeContext& node, const Expr& result, size_t scale, int64_t axis) {
  const DataType dtype = node.TypeOf(node.Input(scale + 1)).dtype();
  if (node.Rank(node.Input(scale)) > 1) {
    return QuantizeElements(node, result, node.Input(scale), node.Input(scale + 1), dtype);
  }
  return node.Op("qnn.quantize", {result, node.Cast(node.Input(scale), kFloat32), node.Input(scale + 1)},
                 {{"axis", axis}, {"out_dtype", dtype}});
}

Results ConvertQLinearConv(NodeContext& node) {
  // x, its scale, its zero point, w, scale, zero point, y's scale, zero point, bias.
  const Expr data = Dequantized(node, 0, 1);
  const Expr weight = Dequantized(node, 3, 0);
  Expr result = Convolve(node, data, weight);
  if (node.HasInput(8)) {
    const Expr scale = node.Op("multiply", {node.Cast(node.Input(1), kFloat32), node.Cast(node.Input(4), kFloat32)});
    const Expr bias = node.Op("multiply", {node.Cast(node.Input(8), kFloat32), scale});
    Shape per_channel(static_cast<size_t>(node.Rank(result)) - 1, 1);
    per_channel[0] = NumElements(node.ShapeOf(bias));
    result = node.Op("add", {result, node.Reshape(bias, per_channel)});
  }
  return {Requantized(node, result, 6, 1)};
}

Results ConvertQLinearMatMul(NodeContext& node) {
  const Expr a = DequantizedMatrix(node, 0, /*is_left=*/true);
  const Expr b = DequantizedMatrix(node, 3, /*is_left=*/false);
  const Expr product = MultiplyMatrices(node, a, b);
  return {Requantized(node, product, 6, std::max(node.Rank(product) - 2, 0))};
}

/// An 8-bit operand as int32, its zero point subtracted. A zero point per row or column is spread over axis `axis`.
Expr Widened(NodeContext& node, size_t input, size_t zero_point, int64_t axis) {
  const Expr data = node.Cast(node.Input(input), kInt32);
  if (!node.HasInput(zero_point)) return data;
  Expr zero = node.Cast(node.Input(zero_point), kInt32);
  const int rank = node.Rank(data);
  if (node.Rank(zero) == 1 && node.ShapeOf(zero)[0] != 1) {
    Shape shape(static_cast<size_t>(rank - (axis < 0 ? axis + rank : axis)), 1);
    shape[0] = node.ShapeOf(zero)[0];
    zero = node.Reshape(zero, shape);
  }
  return node.Op("subtract", {data, zero});
}

Results ConvertConvInteger(NodeContext& node) {
  return {Convolve(node, Widened(node, 0, 2, 1), Widened(node, 1, 3, 0))};
}

Results ConvertMatMulInteger(NodeContext& node) {
  return {MultiplyMatrices(node, Widened(node, 0, 2, -2), Widened(node, 1, 3, -1))};
}

}  // namespace

void AddQuantisedConverters(OnnxConverters& converters) {
  converters.Add("QuantizeLinear", ConvertQuantizeLinear, "x: number, y_scale: number, y_zero_point?: int -> y",
                 NarrowUse::kItsOwn);
  converters.Add("DequantizeLinear", ConvertDequantizeLinear, "x: int, x_scale: number, x_zero_point?: same -> y",
                 NarrowUse::kItsOwn);
  converters.Add("DynamicQuantizeLinear", ConvertDynamicQuantizeLinear, "x: float -> y, y_scale, y_zero_point");
  converters.Add("QLinearConv", ConvertQLinearConv,
                 "x: int[3..5+], x_scale: float[0..1], x_zero_point: same[0..1], w: int[3..5+], w_scale: "
                 "float[0..1], w_zero_point: int[0..1], y_scale: float[0..1], y_zero_point: int[0..1], B?: int[1] -> "
                 "y");
  converters.Add("QLinearMatMul", ConvertQLinearMatMul,
                 "a: int[1..], a_scale: float, a_zero_point: same, b: int[1..], b_scale: float, b_zero_point: int, "
                 "y_scale: float, y_zero_point: int -> y");
  converters.Add("ConvInteger", ConvertConvInteger,
                 "x: int[3..5+], w: int[3..5+], x_zero_point?: same[0..1], w_zero_point?: int[0..1] -> y");
  converters.Add("MatMulInteger", ConvertMatMulInteger,
                 "A: int[1..], B: int[1..], a_zero_point?: same, b_zero_point?: int -> Y");
}

}  // namespace collage
