// block_quantised.cc: weights of 2, 4 or 8 bits with a scale for each block of a row, packed into bytes.
#include <fmt/format.h>

#include "collage/ir/infer_type.h"
#include "frontend/onnx/builders.h"
#include "frontend/onnx/converters/microsoft/microsoft.h"
#include "frontend/onnx/narrow_types.h"
#include "ir/ops/qnn/packing.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

/// Numbers of `bits` bits that lie in the bytes of the last axis, those of the lower bits first, as uint8.
Expr Unpacked(NodeContext& node, const Expr& bytes, int64_t bits) {
  if (bits == 8) return bytes;
  Sizes shape = node.SizesOf(bytes);
  const int64_t per_byte = 8 / bits;
  Sizes column = shape;
  column.emplace_back(1);
  V shifts;
  for (int64_t i = 0; i < per_byte; ++i) shifts.push_back(i * bits);
  const Expr shift = node.Cast(Int64s(shifts), kUInt8);
  const Expr shifted = node.Op("right_shift", {node.Reshape(bytes, column), shift});
  const Expr numbers = node.Op("bitwise_and", {shifted, MakeScalar(static_cast<double>((1 << bits) - 1), kUInt8)});
  shape.back() = shape.back() * per_byte;
  return node.Reshape(numbers, shape);
}

int64_t Bits(NodeContext& node) {
  const int64_t bits = node.Int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) node.Unsupported(fmt::format("numbers of {} bits", bits));
  return bits;
}

/// Zero points [rows, blocks] of input `i`, as `dtype`: packed like the weights, plain, or half of the range.
Expr ZeroPoints(NodeContext& node, size_t i, int64_t rows, int64_t blocks, int64_t bits, DataType dtype) {
  if (!node.HasInput(i)) return MakeScalar(static_cast<double>(1 << (bits - 1)), dtype);
  Expr zeros = node.Input(i);
  if (node.TypeOf(zeros).dtype().is_floating()) return node.Cast(node.Reshape(zeros, {rows, blocks}), dtype);
  const int64_t bytes = (blocks * bits + 7) / 8;
  zeros = Unpacked(node, node.Reshape(zeros, {rows, bytes}), bits);
  return node.Cast(Slice(node, zeros, 1, 0, blocks), dtype);
}

/// A [.., K] times weights [N, K] that stay packed as [N, blocks, bytes].
Expr PackedProduct(NodeContext& node, const Expr& bytes, const Expr& scales, const Expr& zeros, int64_t bits,
                   int64_t block) {
  Sizes shape = node.SizesOf(node.Input(0));
  const SymbolicSize rows = Sizes(shape.begin(), shape.end() - 1).Product();
  std::vector<Expr> args{node.Reshape(node.Input(0), {rows, shape.back()}), bytes, scales};
  if (zeros) args.push_back(zeros);
  const Expr product = node.Op("qnn.matmul_nbits", args, {{"bits", bits}, {"block_size", block}});
  shape.back() = node.ShapeOf(bytes)[0];
  return node.Reshape(product, shape);
}

/// A [.., K] times weights [N, K] that lie as [N, blocks, bytes].
Results ConvertMatMulNBits(NodeContext& node) {
  if (node.Int("weight_prepacked", 0) != 0) node.Unsupported("weights that lie as one GPU wants them");
  if (node.HasInput(4)) node.Unsupported("rows that are permuted (g_idx)");
  const int64_t bits = Bits(node), block = node.PositiveInt("block_size", 0);
  const int64_t columns = node.PositiveInt("N", 0), features = node.PositiveInt("K", 0);
  const int64_t blocks = (features + block - 1) / block;
  const Shape packed = node.ShapeOf(node.Input(1));
  if (NumElements(packed) != columns * blocks * (block * bits / 8)) {
    node.Invalid(fmt::format("weights of shape {} are not {} x {} numbers of {} bits in blocks of {}", ToString(packed),
                             columns, features, bits, block));
  }
  const DataType dtype = node.TypeOf(node.Input(0)).dtype();
  const Expr bytes = node.Reshape(node.Input(1), {columns, blocks, block * bits / 8});
  const auto with_bias = [&](const Expr& product) {
    return node.HasInput(5) ? node.Op("add", {product, node.Input(5)}) : product;
  };
  if (node.IsConstant(1) && node.IsConstant(2) && (!node.HasInput(3) || node.IsConstant(3))) {
    const bool is_float = node.HasInput(3) && node.TypeOf(node.Input(3)).dtype().is_floating();
    const Expr zeros =
        node.HasInput(3) ? ZeroPoints(node, 3, columns, blocks, bits, is_float ? dtype : kUInt8) : nullptr;
    const Expr scales = node.Reshape(node.Input(2), {columns, blocks});
    return {with_bias(PackedProduct(node, bytes, scales, zeros, bits, block))};
  }
  const Expr numbers = node.Cast(Unpacked(node, bytes, bits), dtype);
  const auto per_block = [&](const Expr& x) { return node.Rank(x) == 0 ? x : node.Reshape(x, {columns, blocks, 1}); };
  const Expr zeros = ZeroPoints(node, 3, columns, blocks, bits, dtype);
  const Expr shifted = node.Op("subtract", {numbers, per_block(zeros)});
  const Expr weights = node.Op("multiply", {shifted, per_block(node.Cast(node.Input(2), dtype))});
  const Expr matrix = Slice(node, node.Reshape(weights, {columns, blocks * block}), 1, 0, features);
  return {with_bias(MultiplyMatrices(node, node.Input(0), Transpose(node, matrix, {1, 0})))};
}

/// Zero points of a table of `rows` x `blocks`, one a byte; null where they are half of the range.
Expr TableZeros(NodeContext& node, const NarrowType* narrow, int64_t bits, int64_t rows, int64_t blocks) {
  if (narrow == nullptr) {
    return node.HasInput(3) ? Slice(node, Unpacked(node, node.Input(3), bits), 1, 0, blocks) : nullptr;
  }
  const Tensor zeros = node.HasInput(3) ? node.Constant(3) : Tensor::Zeros({rows, blocks}, narrow->storage());
  const Tensor packed = PackedZeros(zeros, narrow->storage(), bits);
  return packed.defined() ? MakeConstant(packed) : nullptr;
}

/// Rows of a table of packed numbers; those of four bits that take a byte are packed now.
Results ConvertGatherBlockQuantized(NodeContext& node) {
  const NarrowType* narrow = node.NarrowOf(0);
  if (narrow != nullptr && narrow->is_floating) node.Unsupported(fmt::format("a table of {}", narrow->name));
  const int rank = node.Rank(node.Input(0));
  const int64_t bits = narrow != nullptr ? narrow->bits : Bits(node), block = node.PositiveInt("block_size", 128);
  const int64_t gathered = NormalAxis(node, node.Int("gather_axis", 0), rank);
  const int64_t axis = NormalAxis(node, node.Int("quantize_axis", 1), rank);
  if (gathered != 0 || axis != rank - 1 || rank != 2) {
    node.Unsupported("tables that are not gathered by rows and quantised along them");
  }
  Expr data = node.Input(0);
  if (narrow != nullptr) {
    if (node.ShapeOf(data)[1] % (8 / bits) != 0) node.Unsupported("rows that end within a byte");
    data = MakeConstant(PackedNumbers(node.Constant(0), bits));
  }
  const Shape table = AsTensorType(InferType(data))->static_shape();
  const int64_t features = table[1] * 8 / bits, blocks = (features + block - 1) / block;
  std::vector<Expr> args{data, node.Input(1), node.Input(2)};
  if (const Expr zeros = TableZeros(node, narrow, bits, table[0], blocks)) args.push_back(zeros);
  return {node.Op("qnn.take_nbits", args, {{"bits", bits}, {"block_size", block}})};
}

}  // namespace

void AddMicrosoftBlockQuantised(OnnxConverters& converters) {
  converters.Add("com.microsoft.MatMulNBits", ConvertMatMulNBits,
                 "A: float[1..], B: int[2..3], scales: float[1..3], zero_points?: number[1..3], g_idx?: int[1], bias?: "
                 "same[1] -> Y");
  converters.Add("com.microsoft.GatherBlockQuantized", ConvertGatherBlockQuantized,
                 "data: int[1..], indices: int, scales: float[1..], zero_points?: int[1..] -> output",
                 NarrowUse::kItsOwn);
}

}  // namespace collage
