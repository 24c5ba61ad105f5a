// matmul_nbits.cc: products with weights of few bits, of which each block of a row has a scale, and maybe a zero point,
// of its own (ONNX Runtime's com.microsoft.MatMulNBits).
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ir/ops/families.h"
#include "ir/ops/qnn/quantised.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

/// Fails unless argument `i` is a matrix with an element for each block of each row of `weight`.
void CheckPerBlock(const OpCall& call, size_t i, const TensorTypeNode& weight) {
  const TensorTypeNode& type = TensorArg(call, i, 2);
  for (size_t d = 0; d < 2; ++d) {
    if (type.shape()[d] == weight.shape()[d] || type.shape()[d].is_any() || weight.shape()[d].is_any()) continue;
    throw RelationFailure{fmt::format("expects one element per block of {} as argument {}, got {}",
                                      weight.shape()[0].ToString() + " x " + weight.shape()[1].ToString() + " blocks",
                                      i, ToString(call.args[i]))};
  }
}

Type MatMulNBitsType(const OpCall& call) {
  const int64_t bits = call.attrs.Int("bits"), block = call.attrs.Int("block_size");
  if (bits != 2 && bits != 4 && bits != 8) throw RelationFailure{fmt::format("numbers of {} bits", bits)};
  if (block < 8 / bits || block % (8 / bits) != 0) throw RelationFailure{fmt::format("blocks of {} numbers", block)};
  const TensorTypeNode& data = TensorArg(call, 0, 2);
  const TensorTypeNode& weight = TensorArg(call, 1, 3);
  if (!data.dtype().is_floating() || weight.dtype() != kUInt8) {
    throw RelationFailure{"expects floats and packed bytes, got " + ToString(call.args[0]) + " and " +
                          ToString(call.args[1])};
  }
  const Dim bytes = weight.shape()[2], blocks = weight.shape()[1], depth = data.shape()[1];
  const bool fits = depth.is_any() || blocks.is_any() ||
                    (depth.size() <= blocks.size() * block && depth.size() > (blocks.size() - 1) * block);
  if (!fits || (!bytes.is_any() && bytes.size() != block * bits / 8)) {
    throw RelationFailure{fmt::format("cannot multiply {} by {} in blocks of {} numbers of {} bits",
                                      ToString(call.args[0]), ToString(call.args[1]), block, bits)};
  }
  CheckPerBlock(call, 2, weight);
  if (!TensorArg(call, 2).dtype().is_floating()) {
    throw RelationFailure{"expects floats as scales, got " + ToString(call.args[2])};
  }
  if (call.args.size() > 3) CheckPerBlock(call, 3, weight);
  return TensorType(std::vector<Dim>{data.shape()[0], weight.shape()[0]}, data.dtype());
}

/// Numbers of `kBits` bits, less `zero`, times `scale`: as many as fit into `to`, which end in the last byte.
template <int kBits>
void UnpackBlock(const uint8_t* bytes, float zero, float scale, std::span<float> to) {
  constexpr size_t kPerByte = 8 / kBits;
  constexpr uint8_t kMask = (1 << kBits) - 1;
  const auto number = [&](size_t byte, size_t place) {
    return (static_cast<float>(bytes[byte] >> (place * kBits) & kMask) - zero) * scale;
  };
  const size_t whole = to.size() / kPerByte;
  for (size_t byte = 0; byte < whole; ++byte) {
    for (size_t place = 0; place < kPerByte; ++place) to[byte * kPerByte + place] = number(byte, place);
  }
  for (size_t k = whole * kPerByte; k < to.size(); ++k) to[k] = number(whole, k % kPerByte);
}

/// The weights [N, K] that `inputs` stand for.
Tensor Weights(std::span<const Tensor> inputs, const Attrs& attrs) {
  const int64_t bits = attrs.Int("bits"), block = attrs.Int("block_size");
  const int64_t depth = inputs[0].shape()[1], rows = inputs[1].shape()[0], blocks = inputs[1].shape()[1];
  const Tensor scales = inputs[2].Cast(kFloat32);
  const Tensor zeros = inputs.size() > 3 ? inputs[3].Cast(kFloat32) : Tensor();
  const auto half = static_cast<float>(1 << (bits - 1));
  const auto unpack = bits == 2 ? UnpackBlock<2> : bits == 4 ? UnpackBlock<4> : UnpackBlock<8>;
  const Tensor weights = Tensor::Empty({rows, depth}, kFloat32);
  for (int64_t at = 0; at < rows * blocks; ++at) {
    const int64_t first = at % blocks * block;
    unpack(inputs[1].data<uint8_t>() + at * block * bits / 8, zeros.defined() ? zeros.data<float>()[at] : half,
           scales.data<float>()[at],
           {weights.data<float>() + at / blocks * depth + first, static_cast<size_t>(std::min(block, depth - first))});
  }
  return weights;
}

OpExample Example(int64_t rows, int64_t depth, int64_t columns, int64_t bits, int64_t block, DataType zeros) {
  const int64_t blocks = (depth + block - 1) / block;
  OpExample example{
      {F32({rows, depth}), TensorType(Shape{columns, blocks, block * bits / 8}, kUInt8), F32({columns, blocks})},
      {{"bits", bits}, {"block_size", block}},
      0,
      255};
  if (zeros != DataType()) example.args.push_back(TensorType(Shape{columns, blocks}, zeros));
  return example;
}

}  // namespace

void AddMatMulNBits(std::vector<OpDef>& rows) {
  OpDef op;
  op.name = "qnn.matmul_nbits";
  op.doc =
      "data [M, K] times the transpose of weights [N, K]: packed numbers [N, blocks, bytes of a block], the first in "
      "the lowest bits, less a zero point [N, blocks], times a scale [N, blocks]. Without zero points, they are half "
      "of "
      "the range.";
  op.args = {"data", "weight", "scale", "zero_point"};
  op.min_args = 3;
  op.attrs = {
      {"bits", AttrKind::kInt, 4, "2, 4 or 8"},
      {"block_size", AttrKind::kInt, 32, "numbers of a row that share a scale; the last block may be filled up"}};
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.keeps_rows = RowsOfFirst;
  op.equal_dims = [](const OpCall&, const Type&, DimEquations& equations) {
    equations.Equal({DimRef::kResult, 0, 0}, {0, 0, 0});
    equations.Equal({DimRef::kResult, 0, 1}, {1, 0, 0});
  };
  op.relation = Relation(MatMulNBitsType);
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    outputs[0] = Apply("nn.dense", {inputs[0].Cast(kFloat32), Weights(inputs, attrs)}).Cast(outputs[0].dtype());
  };
  op.multiply_adds = [](const OpCall& call) {
    const Shape data = AsTensorType(call.args[0])->static_shape();
    return static_cast<double>(data[0] * data[1] * AsTensorType(call.args[1])->static_shape()[0]);
  };
  op.examples = {Example(1, 64, 40, 4, 32, {}), Example(3, 50, 33, 4, 16, kUInt8), Example(7, 128, 16, 8, 64, {}),
                 Example(1, 96, 70, 2, 32, kFloat32), Example(19, 256, 96, 4, 128, kUInt8)};
  rows.push_back(std::move(op));
}

}  // namespace collage
