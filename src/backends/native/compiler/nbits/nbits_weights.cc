// nbits_weights.cc: packing when a partition is compiled, and the instructions that take numbers out.
#include "backends/native/compiler/nbits/nbits_weights.h"

#include <cmath>
#include <cstring>

#include "backends/native/compiler/contraction/contraction.h"
#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "collage/support/error.h"
#include "support/packed_bits.h"

namespace collage::native {
namespace {

const Tensor& Known(const CallNode& call, size_t i) {
  const ConstantNode* constant = As<ConstantNode>(call.args()[i]);
  if (constant == nullptr) throw Error(ErrorCategory::kUnsupported, "packed weights that are not known");
  return constant->value();
}

/// `numbers` in the first of `types` that holds them exactly, else as float32.
Tensor Narrowest(const Tensor& numbers, std::initializer_list<DataType> types) {
  for (const DataType type : types) {
    const Tensor narrow = numbers.Cast(type);
    const Tensor back = narrow.Cast(kFloat32);
    if (std::memcmp(back.data<float>(), numbers.data<float>(), numbers.size_bytes()) == 0) return narrow;
  }
  return numbers;
}

/// A matrix [channels, blocks] as [panels, blocks, width], filled up with zeros.
Tensor InPanels(const Tensor& matrix, int64_t width) {
  const int64_t channels = matrix.shape()[0], blocks = matrix.shape()[1];
  const Tensor from = matrix.Cast(kFloat32);
  Tensor packed = Tensor::Zeros({(channels + width - 1) / width, blocks, width}, kFloat32);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t b = 0; b < blocks; ++b) {
      packed.data<float>()[(c / width * blocks + b) * width + c % width] = from.data<float>()[c * blocks + b];
    }
  }
  return packed;
}

}  // namespace

NBitsWeights::NBitsWeights(PartitionState& state, const CallNode& call)
    : state_(state),
      e_(state.emitter),
      bits_(call.attrs().Int("bits")),
      block_(call.attrs().Int("block_size")),
      blocks_(Known(call, 1).shape()[1]),
      channels_(Known(call, 1).shape()[0]),
      width_(PanelWidth(state, kFloat32)) {
  PackWords(Known(call, 1));
  PackScales(Known(call, 2));
  PackZeros(call.args().size() > 3 ? &Known(call, 3) : nullptr);
}

int64_t NBitsWeights::vectors() const { return width_ / e_.native_lanes(); }

void NBitsWeights::PackWords(const Tensor& numbers) {
  const int64_t words = depth() / per_word();
  const int64_t row_bytes = depth() * bits_ / 8;
  Tensor packed = Tensor::Zeros({panels(), words, width_}, kInt32);
  auto* to = reinterpret_cast<uint32_t*>(packed.data<int32_t>());
  for (int64_t channel = 0; channel < channels_; ++channel) {
    const uint8_t* row = numbers.data<uint8_t>() + channel * row_bytes;
    uint32_t* column = to + channel / width_ * words * width_ + channel % width_;
    for (int64_t k = 0; k < depth(); ++k) {
      const int64_t at = k % per_word();
      const int64_t shift = at % 4 * 8 + at / 4 * bits_;
      column[k / per_word() * width_] |= static_cast<uint32_t>(PackedNumber(row, k, bits_)) << shift;
    }
  }
  words_ = state_.AddConstant(packed);
}

void NBitsWeights::PackScales(const Tensor& scales) {
  scales_ = state_.AddConstant(Narrowest(InPanels(scales, width_), {kFloat16, kBFloat16}));
}

void NBitsWeights::PackZeros(const Tensor* zeros) {
  if (zeros == nullptr) {
    zero_ = int64_t{1} << (bits_ - 1);
    return;
  }
  const double first = zeros->num_elements() == 0 ? 0 : zeros->At(0);
  bool is_shared = first == std::floor(first);
  for (int64_t i = 0; i < zeros->num_elements(); ++i) is_shared = is_shared && zeros->At(i) == first;
  if (is_shared) {
    zero_ = static_cast<int64_t>(first);
    return;
  }
  zeros_ = state_.AddConstant(Narrowest(InPanels(*zeros, width_), {kUInt8, kFloat16}));
}

std::string NBitsWeights::WordType() const { return fmt::format("vector<{}xi32>", e_.lanes()); }

std::string NBitsWeights::WordOp(const char* op, const Vector& words, int64_t operand) const {
  const std::string number = e_.Def(fmt::format("arith.constant dense<{}> : {}", operand, WordType()));
  return e_.Def(fmt::format("arith.{} {}, {} : {}", op, words, number, WordType()));
}

Vector NBitsWeights::Words(const I64& panel, const I64& word, int vector) const {
  const Ptr address = e_.Address(words_, Bases({panel, word, e_.Int(vector * e_.lanes())}));
  return Vector{
      e_.Def(fmt::format("llvm.load {} invariant {{alignment = 4 : i64}} : !llvm.ptr -> {}", address, WordType()))};
}

void NBitsWeights::FetchAhead(const I64& panel, const I64& block, int64_t bytes) const {
  constexpr int64_t kLineBytes = 64;
  const Ptr begin = e_.Address(words_, Bases({panel, e_.MulInt(block, words_per_block()), e_.Int(0)}));
  for (int64_t line = 0; line < words_per_block() * width_ * 4; line += kLineBytes) {
    e_.Prefetch(e_.ElementAt(begin, bytes + line, "i8"), {.nearest = 1});
  }
}

Vector NBitsWeights::PerBlock(const Buffer& buffer, const I64& panel, const I64& block, int vector) const {
  const Ptr address = e_.Address(buffer, Bases({panel, block, e_.Int(vector * e_.lanes())}));
  const Value value = e_.LoadAt(address, buffer.dtype);
  return Vector{state_.expressions.math().Convert(value, kFloat32).name};
}

Vector NBitsWeights::Scales(const I64& panel, const I64& block, int vector) const {
  return PerBlock(scales_, panel, block, vector);
}

Vector NBitsWeights::Zeros(const I64& panel, const I64& block, int vector) const {
  return zero_ ? Vector() : PerBlock(zeros_, panel, block, vector);
}

Vector NBitsWeights::Numbers(const Vector& words, int64_t position, const Vector& zeros) const {
  constexpr int64_t kEntries = 16;  // of a table in a register
  VectorMath& m = state_.math();
  const int64_t shift = position % 4 * 8 + position / 4 * bits_;
  const int64_t mask = (int64_t{1} << bits_) - 1;
  const Vector low = shift == 0 ? words : Vector{WordOp("shrui", words, shift)};
  Value number;
  if (m.IsAvx512() && mask < kEntries) {
    // The lowest four bits say which entry: those beyond the number make no difference.
    std::vector<double> table;
    for (int64_t i = 0; i < kEntries; ++i) table.push_back(static_cast<double>((i & mask) - zero_.value_or(0)));
    number = m.LookUp(table, low);
  } else {
    Vector whole{WordOp("andi", low, mask)};
    if (zero_.value_or(0) != 0) whole = Vector{WordOp("subi", whole, *zero_)};
    number = {e_.Def(fmt::format("arith.sitofp {} : {} to {}", whole, WordType(), e_.FloatVector())),
              ElementKind::kFloat};
  }
  return zero_ ? Vector{number.name} : Vector{m.Subtract(number, {zeros.name(), ElementKind::kFloat}).name};
}

Vector NBitsWeights::Bytes(const Vector& words, int64_t group) const {
  if (bits_ == 8) return byte_offset() == 0 ? words : FlipSigns(e_, words);
  const int64_t byte = (int64_t{1} << bits_) - 1;
  const Vector low = group == 0 ? words : Vector{WordOp("shrui", words, group * bits_)};
  return Vector{WordOp("andi", low, byte * 0x01010101)};
}

}  // namespace collage::native
