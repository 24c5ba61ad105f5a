// packing.h: integers in as few bits as hold them, as qnn.matmul_nbits and qnn.take_nbits read them.
#pragma once

#include <cstdint>

#include "collage/runtime/tensor.h"

namespace collage {

/// The fewest bits, 2, 4 or 8, that hold all `numbers`, int8 or uint8.
int64_t BitsOf(const Tensor& numbers);

/// Returns the number that makes numbers of `dtype`, int8 or uint8, ones of `bits` bits without a sign: it is added to
/// them.
inline int64_t PackingOffset(DataType dtype, int64_t bits) {
  return dtype.code == DataType::Code::kInt ? int64_t{1} << (bits - 1) : 0;
}

/// The elements of `numbers`, int8 or uint8, plus their PackingOffset, packed into bytes along the last axis, the first
/// in the lowest bits. The last axis must hold whole bytes.
Tensor PackedNumbers(const Tensor& numbers, int64_t bits);

/// Zero points of numbers of `dtype` as those of packed numbers: as bytes where these hold them, else as float32.
/// Undefined if they all are half of the range, for which no zero points stand.
Tensor PackedZeros(const Tensor& zeros, DataType dtype, int64_t bits);

}  // namespace collage
