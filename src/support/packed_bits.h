// packed_bits.h: numbers of fewer than 8 bits, packed into bytes, the first one in the lowest bits.
#pragma once

#include <cstdint>

namespace collage {

/// Number `index` of those that lie in `bytes`, `bits` each: 1, 2, 4 or 8.
inline uint8_t PackedNumber(const uint8_t* bytes, int64_t index, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  return static_cast<uint8_t>((bytes[index / per_byte] >> (index % per_byte * bits)) & ((1 << bits) - 1));
}

}  // namespace collage
