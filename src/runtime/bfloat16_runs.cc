// bfloat16_runs.cc: sixteen elements at a time, in integers.
#include "runtime/bfloat16_runs.h"

#include <cstring>

#include "support/clones.h"
#include "support/numbers.h"

namespace collage {
namespace {

constexpr int kRun = 16;
using Words = Lanes<uint32_t, kRun>::Of;
using Halves = Lanes<uint16_t, kRun>::Of;

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

}  // namespace collage
