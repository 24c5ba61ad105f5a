// take_nbits.cc: rows of a table of few bits, of which each block of a row has a scale, and maybe a zero point, of its
// own (ONNX Runtime's com.microsoft.GatherBlockQuantized).
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"
#include "support/packed_bits.h"

namespace collage {
namespace {

/// Fails unless argument `i` is a matrix of `rows` x `blocks`.
void CheckPerBlock(const OpCall& call, size_t i, const Dim& rows, const Dim& blocks) {
  const TensorTypeNode& type = TensorArg(call, i, 2);
  if (MayEqual(type.shape()[0], rows) && MayEqual(type.shape()[1], blocks)) return;
  throw RelationFailure{fmt::format("expects one element per block of {} x {} blocks as argument {}, got {}",
                                    rows.ToString(), blocks.ToString(), i, ToString(call.args[i]))};
}

Type TakeNBitsType(const OpCall& call) {
  const int64_t bits = call.attrs.Int("bits"), block = call.attrs.Int("block_size");
  if (bits != 2 && bits != 4 && bits != 8) throw RelationFailure{fmt::format("numbers of {} bits", bits)};
  if (block < 1) throw RelationFailure{fmt::format("blocks of {} numbers", block)};
  const TensorTypeNode& data = TensorArg(call, 0, 2);
  const TensorTypeNode& indices = TensorArg(call, 1);
  const TensorTypeNode& scale = TensorArg(call, 2);
  if (data.dtype() != kUInt8 || !indices.dtype().is_integer() || !scale.dtype().is_floating()) {
    throw RelationFailure{
        fmt::format("expects packed bytes, integers as indices and floats as scales, got {}, {} and {}",
                    ToString(call.args[0]), ToString(call.args[1]), ToString(call.args[2]))};
  }
  const bool takes_some =
      std::ranges::none_of(indices.shape(), [](const Dim& dim) { return dim.is_any() || dim.size() == 0; });
  if (data.shape()[0] == Dim(0) && takes_some) throw RelationFailure{"takes rows of an empty table"};
  const Dim features = Times(data.shape()[1], Dim(8 / bits));
  const Dim blocks = features.is_any() ? Dim::Any() : Dim((features.size() + block - 1) / block);
  for (size_t i = 2; i < call.args.size(); ++i) CheckPerBlock(call, i, data.shape()[0], blocks);
  std::vector<Dim> shape = indices.shape();
  shape.push_back(features);
  return TensorType(shape, scale.dtype());
}

void TakeNBits(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  const int64_t bits = attrs.Int("bits"), block = attrs.Int("block_size");
  const int64_t rows = inputs[0].shape()[0], bytes = inputs[0].shape()[1], blocks = inputs[2].shape()[1];
  const int64_t features = bytes * 8 / bits;
  const Tensor scales = inputs[2].Cast(kFloat32);
  const Tensor zeros = inputs.size() > 3 ? inputs[3].Cast(kFloat32) : Tensor();
  const auto half = static_cast<float>(1 << (bits - 1));
  const Tensor taken = Tensor::Empty(outputs[0].shape(), kFloat32);
  auto* to = taken.data<float>();
  for (const int64_t index : inputs[1].ToInts()) {
    const int64_t row = std::clamp<int64_t>(index < 0 ? index + rows : index, 0, rows - 1);
    for (int64_t k = 0; k < features; ++k) {
      const int64_t at = row * blocks + k / block;
      const auto number = static_cast<float>(PackedNumber(inputs[0].data<uint8_t>() + row * bytes, k, bits));
      *to++ = (number - (zeros.defined() ? zeros.data<float>()[at] : half)) * scales.data<float>()[at];
    }
  }
  outputs[0] = taken.Cast(outputs[0].dtype());
}

OpExample Example(const Shape& indices, int64_t features, int64_t bits, int64_t block, DataType zeros,
                  DataType scales = kFloat32) {
  constexpr int64_t kRows = 9;
  const int64_t blocks = (features + block - 1) / block;
  OpExample example{{TensorType(Shape{kRows, features * bits / 8}, kUInt8), TensorType(indices, kInt64),
                     TensorType(Shape{kRows, blocks}, scales)},
                    {{"bits", bits}, {"block_size", block}},
                    0,
                    8};
  if (zeros != DataType()) example.args.push_back(TensorType(Shape{kRows, blocks}, zeros));
  return example;
}

}  // namespace

void AddTakeNBits(std::vector<OpDef>& rows) {
  OpDef op;
  op.name = "qnn.take_nbits";
  op.doc =
      "Rows of a table [R, K], at the given indices: packed numbers [R, bytes], the first in the lowest bits, less a "
      "zero point [R, blocks], times a scale [R, blocks]. Without zero points, they are half of the range. Negative "
      "indices count from the end.";
  op.args = {"data", "indices", "scale", "zero_point"};
  op.min_args = 3;
  op.attrs = {{"bits", AttrKind::kInt, 4, "2, 4 or 8"},
              {"block_size", AttrKind::kInt, 32, "numbers of a row that share a scale; the last block may be shorter"}};
  op.pattern = OpPatternKind::kInjective;
  op.equal_dims = [](const OpCall& call, const Type&, DimEquations& equations) {
    for (int dim = 0; dim < AsTensorType(call.args[1])->rank(); ++dim) {
      equations.Equal({DimRef::kResult, 0, dim}, {1, 0, dim});
    }
  };
  op.index_limit = [](const OpCall& call, size_t argument) -> std::optional<int64_t> {
    if (argument != 1) return std::nullopt;
    return KnownSize(call, 0, 0);
  };
  op.relation = Relation(TakeNBitsType);
  op.reference = TakeNBits;
  op.examples = {Example({2, 3}, 64, 4, 32, {}), Example({}, 48, 4, 32, kUInt8), Example({5}, 40, 8, 16, kFloat32),
                 Example({1, 4}, 36, 2, 16, kUInt8), Example({3}, 70, 4, 7, {}, kFloat16)};
  rows.push_back(std::move(op));
}

}  // namespace collage
