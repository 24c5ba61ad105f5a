// narrow_runs.cc: sixteen elements at a time, in integers: compilers make vectors of these for every processor.
#include "runtime/narrow_runs.h"

#include <cstring>

#include "support/clones.h"
#include "support/numbers.h"

namespace collage {
namespace {

constexpr int kRun = 16;
using Words = Lanes<uint32_t, kRun>::Of;
using Halves = Lanes<uint16_t, kRun>::Of;
using Singles = Lanes<float, kRun>::Of;

}  // namespace

COLLAGE_CLONES void RoundToBFloat16(const float* source, uint16_t* target, int64_t count) {
  int64_t i = 0;
  for (; i + kRun <= count; i += kRun) {
    Words bits;
    std::memcpy(&bits, source + i, sizeof bits);
    const Words upper = bits >> 16U;
    const Words nearest = (bits + 0x7FFFU + (upper & 1U)) >> 16U;
    const Words rounded = (bits & 0x7FFFFFFFU) > 0x7F800000U ? upper | 0x40U : nearest;  // NaN stays NaN
    const Halves halves = __builtin_convertvector(rounded, Halves);
    std::memcpy(target + i, &halves, sizeof halves);
  }
  for (; i < count; ++i) target[i] = FloatToBFloat16(source[i]);
}

COLLAGE_CLONES void WidenFromBFloat16(const uint16_t* source, float* target, int64_t count) {
  int64_t i = 0;
  for (; i + kRun <= count; i += kRun) {
    Halves halves;
    std::memcpy(&halves, source + i, sizeof halves);
    const Words bits = __builtin_convertvector(halves, Words) << 16U;
    std::memcpy(target + i, &bits, sizeof bits);
  }
  for (; i < count; ++i) target[i] = BFloat16ToFloat(source[i]);
}

COLLAGE_CLONES void RoundToFloat16(const float* source, uint16_t* target, int64_t count) {
  int64_t i = 0;
  for (; i + kRun <= count; i += kRun) {
    Words bits;
    std::memcpy(&bits, source + i, sizeof bits);
    const Words sign = (bits >> 16U) & 0x8000U;
    const Words magnitude = bits & 0x7FFFFFFFU;
    // The exponent's bias is another by 112; half a unit is added, one less before an even result.
    const Words normal = (magnitude - (112U << 23U) + 0xFFFU + ((magnitude >> 13U) & 1U)) >> 13U;
    // Below 2^-14, the last bit is worth what it is in 0.5: an addition rounds there.
    constexpr float kHalf = 0.5F;
    const Words subnormal = reinterpret_cast<Words>(reinterpret_cast<Singles>(magnitude) + kHalf) - (126U << 23U);
    Words rounded = magnitude < (113U << 23U) ? subnormal : normal;
    rounded = magnitude >= 0x477FF000U ? rounded - rounded + 0x7C00U : rounded;
    rounded = magnitude > 0x7F800000U ? rounded - rounded + 0x7E00U : rounded;
    const Halves halves = __builtin_convertvector(rounded | sign, Halves);
    std::memcpy(target + i, &halves, sizeof halves);
  }
  for (; i < count; ++i) target[i] = FloatToHalf(source[i]);
}

COLLAGE_CLONES void WidenFromFloat16(const uint16_t* source, float* target, int64_t count) {
  int64_t i = 0;
  for (; i + kRun <= count; i += kRun) {
    Halves halves;
    std::memcpy(&halves, source + i, sizeof halves);
    const Words bits = __builtin_convertvector(halves, Words);
    const Words magnitude = (bits & 0x7FFFU) << 13U;
    const Words exponent = magnitude & 0x0F800000U;
    const Words normal = magnitude + (112U << 23U);
    const Words endless = magnitude + (224U << 23U);  // infinite, or NaN
    constexpr float kSmallestNormal = 0x1p-14F;
    const Words subnormal =
        reinterpret_cast<Words>(reinterpret_cast<Singles>(magnitude + (113U << 23U)) - kSmallestNormal);
    Words wide = exponent == 0U ? subnormal : normal;
    wide = exponent == 0x0F800000U ? endless : wide;
    wide |= (bits & 0x8000U) << 16U;
    std::memcpy(target + i, &wide, sizeof wide);
  }
  for (; i < count; ++i) target[i] = HalfToFloat(source[i]);
}

}  // namespace collage
