// numbers.h: float16 and bfloat16 by hand, since the language has neither.
#pragma once

#include <bit>
#include <cstdint>

namespace collage {

/// IEEE binary16 → float, exact.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<float>(sign);
    exponent = 1;  // subnormal: normalise
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 0x3ffu;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

/// float → IEEE binary16, rounded to nearest, ties to even; too large becomes infinity.
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x33000001u) return sign;                                    // rounds to zero
  uint32_t exponent = magnitude >> 23;
  uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  // Bits to drop: 13 for normal results, more for subnormal ones.
  const uint32_t shift = exponent < 113 ? 126 - exponent : 13;
  const uint32_t half_unit = 1u << (shift - 1);
  const uint32_t rest = mantissa & ((1u << shift) - 1);
  uint32_t result = mantissa >> shift;
  if (rest > half_unit || (rest == half_unit && (result & 1u) != 0)) ++result;
  if (exponent >= 113) result += (exponent - 113) << 10;  // the implicit bit carries into the exponent
  return static_cast<uint16_t>(sign | result);
}

/// double → float for further rounding to fewer bits: towards zero, the last bit set when something was lost ("round to
/// odd"), so that the second rounding sees on which side of a tie the value was.
inline float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool grew = (value < 0 ? -back : back) > (value < 0 ? -value : value);
  if (grew) --bits;
  return std::bit_cast<float>(bits | 1u);
}

inline float BFloat16ToFloat(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

/// float → bfloat16, rounded to nearest, ties to even.
inline uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace collage
