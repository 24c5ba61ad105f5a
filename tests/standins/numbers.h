// numbers.h: floats of tensor cores, for stand-ins.
#pragma once

#include <bit>
#include <cstdint>

namespace standin {

/// The nearest number with ten bits behind the point; ties go away from 0.
inline float RoundToTf32(float value) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000) & ~0x1FFFU);
}

/// a * b of factors in TF32; `in_three`: as sums of two such numbers each, without the product of the smaller ones.
inline double MultiplyInTf32(float a, float b, bool in_three) {
  const float big_a = RoundToTf32(a), big_b = RoundToTf32(b);
  const double product = double{big_a} * big_b;
  if (!in_three) return product;
  const float small_a = RoundToTf32(a - big_a), small_b = RoundToTf32(b - big_b);
  return product + double{big_a} * small_b + double{small_a} * big_b;
}

}  // namespace standin
