// numbers.h: float16 and bfloat16 by hand, since the language has neither.
#pragma once

#include <bit>
#include <cstdint>

namespace collage {

/// IEEE binary16 → float, exact. Without branches, so that loops over elements are vectorised.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = normal + (112u << 23);  // infinity and NaN have the largest exponent in both
  const uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t finite = magnitude < 0x400u ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude < 0x7c00u ? finite : special));
}

/// float → IEEE binary16, rounded to nearest, ties to even; too large becomes infinity. Without branches.
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // The exponent's difference is taken off, and half a unit less one added, or half a unit where the last bit is set;
  // what carries goes into the exponent.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Added to 0.5, whose last bit is that of a subnormal half, the processor rounds.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return static_cast<uint16_t>(sign | (magnitude < 0x477ff000u ? finite : special));
}

/// double → float for further rounding to fewer bits: towards zero, the last bit set when something was lost ("round to
/// odd"), so that the second rounding sees on which side of a tie the value was. NaN stays NaN.
inline float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const double back = nearest;
  const uint32_t is_inexact = back != value ? 1 : 0;
  const uint32_t grew = (back < 0 ? -back : back) > (value < 0 ? -value : value) ? 1 : 0;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(nearest) - grew) | is_inexact);
}

inline float BFloat16ToFloat(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

/// float → bfloat16, rounded to nearest, ties to even.
inline uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace collage
