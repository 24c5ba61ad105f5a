// narrow_runs.h: float32 ↔ bfloat16 and float16 for many elements at a time. The buffers must not overlap.
#pragma once

#include <cstdint>

namespace collage {

/// The nearest bfloat16 of each of `count` elements, ties to even (FloatToBFloat16).
void RoundToBFloat16(const float* source, uint16_t* target, int64_t count);
/// Exact.
void WidenFromBFloat16(const uint16_t* source, float* target, int64_t count);

/// The nearest float16, ties to even; values that are too large become infinite (FloatToHalf). The payload of a NaN may
/// differ.
void RoundToFloat16(const float* source, uint16_t* target, int64_t count);
/// Exact.
void WidenFromFloat16(const uint16_t* source, float* target, int64_t count);

}  // namespace collage
