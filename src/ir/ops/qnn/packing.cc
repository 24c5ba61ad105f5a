// packing.cc: one pass over the numbers each.
#include "ir/ops/qnn/packing.h"

#include <algorithm>

#include "collage/support/error.h"

namespace collage {

int64_t BitsOf(const Tensor& numbers) {
  const std::span<const uint8_t> bytes = numbers.span<uint8_t>();
  for (const int64_t bits : {2, 4}) {
    const auto offset = static_cast<uint8_t>(PackingOffset(numbers.dtype(), bits));
    const auto fits = [&](uint8_t byte) { return static_cast<uint8_t>(byte + offset) < (1 << bits); };
    if (std::ranges::all_of(bytes, fits)) return bits;
  }
  return 8;
}

Tensor PackedNumbers(const Tensor& numbers, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  Shape shape = numbers.shape();
  COLLAGE_CHECK(!shape.empty() && shape.back() % per_byte == 0) << "numbers that end within a byte";
  shape.back() /= per_byte;
  const Tensor packed = Tensor::Zeros(shape, kUInt8);
  const auto offset = static_cast<uint8_t>(PackingOffset(numbers.dtype(), bits));
  const auto* from = numbers.data<uint8_t>();
  for (uint8_t& byte : packed.span<uint8_t>()) {
    for (int64_t place = 0; place < per_byte; ++place) {
      byte = static_cast<uint8_t>(byte | (static_cast<uint8_t>(*from++ + offset) << (place * bits)));
    }
  }
  return packed;
}

Tensor PackedZeros(const Tensor& zeros, DataType dtype, int64_t bits) {
  const auto offset = static_cast<double>(PackingOffset(dtype, bits));
  const auto half = static_cast<double>(int64_t{1} << (bits - 1));
  bool are_half = true, are_bytes = true;
  for (int64_t i = 0; i < zeros.num_elements(); ++i) {
    const double zero = zeros.At(i) + offset;
    are_half = are_half && zero == half;
    are_bytes = are_bytes && zero >= 0 && zero <= 255;
  }
  if (are_half) return {};
  const Tensor packed = Tensor::Empty(zeros.shape(), are_bytes ? kUInt8 : kFloat32);
  for (int64_t i = 0; i < zeros.num_elements(); ++i) packed.Set(i, zeros.At(i) + offset);
  return packed;
}

}  // namespace collage
