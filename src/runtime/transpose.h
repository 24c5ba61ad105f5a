// transpose.h: 2-d transposes of four-byte elements, in registers.
#pragma once

#include <cstdint>

namespace collage {

/// Writes rows [first, last) of the transpose: target[c][r] = source[r][c] for first <= c < last. `source` is
/// [rows][columns], `target` [columns][rows]; nothing else of `target` is written.
void TransposeWords(const uint32_t* source, uint32_t* target, int64_t rows, int64_t columns, int64_t first,
                    int64_t last);

}  // namespace collage
