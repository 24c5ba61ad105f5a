// bfloat16_runs.h: float32 ↔ bfloat16 for many elements at a time.
#pragma once

#include <cstdint>

namespace collage {

/// The nearest bfloat16 of each of `count` elements, ties to even (FloatToBFloat16). The buffers must not overlap.
void RoundToBFloat16(const float* source, uint16_t* target, int64_t count);
/// The other way, exact.
void WidenFromBFloat16(const uint16_t* source, float* target, int64_t count);

}  // namespace collage
