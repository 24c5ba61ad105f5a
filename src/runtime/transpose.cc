// transpose.cc: 8x8 elements are transposed in eight registers by three rounds of shuffles, over pairs, quads, halves.
#include "runtime/transpose.h"

#include <algorithm>
#include <cstring>

#include "support/clones.h"

namespace collage {
namespace {

constexpr int64_t kTile = 8;
constexpr int64_t kBlock = 16;  // columns and rows done together: one cache line read and written whole

using Lanes = uint32_t __attribute__((vector_size(4 * kTile)));

#define COLLAGE_INLINE __attribute__((always_inline)) inline

COLLAGE_INLINE void Load(Lanes& lanes, const uint32_t* source) { std::memcpy(&lanes, source, sizeof lanes); }
COLLAGE_INLINE void Store(const Lanes& lanes, uint32_t* target) { std::memcpy(target, &lanes, sizeof lanes); }

/// Element j of row i becomes element i of row j.
COLLAGE_INLINE void TransposeTile(Lanes (&r)[kTile]) {
  Lanes pairs[kTile];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  Lanes quads[kTile];  // [column modulo 4, from rows 0 to 3 or 4 to 7]
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4) {
    quads[i] = __builtin_shufflevector(pairs[i], pairs[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    quads[i + 1] = __builtin_shufflevector(pairs[i], pairs[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    quads[i + 2] = __builtin_shufflevector(pairs[i + 1], pairs[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    quads[i + 3] = __builtin_shufflevector(pairs[i + 1], pairs[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    r[i] = __builtin_shufflevector(quads[i], quads[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(quads[i], quads[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

COLLAGE_INLINE void TransposeScalar(const uint32_t* source, uint32_t* target, int64_t rows, int64_t columns,
                                    int64_t row, int64_t last_row, int64_t column, int64_t last_column) {
  for (int64_t c = column; c < last_column; ++c) {
    for (int64_t r = row; r < last_row; ++r) target[c * rows + r] = source[r * columns + c];
  }
}

/// Fewer than eight rows, as the three channels of an image: each column is stored as eight elements, of which the next
/// column overwrites those that are too many.
COLLAGE_INLINE void TransposeFewRows(const uint32_t* source, uint32_t* target, int64_t rows, int64_t columns,
                                     int64_t first, int64_t last) {
  const int64_t overrun = kTile - 1 + (kTile + rows - 1) / rows;  // columns that a tile writes to, from its first
  int64_t c0 = first;
  for (; c0 + overrun <= last; c0 += kTile) {
    Lanes tile[kTile] = {};
#pragma GCC unroll 8
    for (int64_t r = 0; r < kTile; ++r) {
      if (r < rows) Load(tile[r], source + r * columns + c0);
    }
    TransposeTile(tile);
#pragma GCC unroll 8
    for (int64_t c = 0; c < kTile; ++c) Store(tile[c], target + (c0 + c) * rows);
  }
  TransposeScalar(source, target, rows, columns, 0, rows, c0, last);
}

/// Fewer than eight columns: each row is read as eight elements, of which only the first are used.
COLLAGE_INLINE void TransposeFewColumns(const uint32_t* source, uint32_t* target, int64_t rows, int64_t columns,
                                        int64_t first, int64_t last) {
  int64_t r0 = 0;
  for (; (r0 + kTile - 1) * columns + kTile <= rows * columns; r0 += kTile) {
    Lanes tile[kTile];
#pragma GCC unroll 8
    for (int64_t r = 0; r < kTile; ++r) Load(tile[r], source + (r0 + r) * columns);
    TransposeTile(tile);
#pragma GCC unroll 8
    for (int64_t c = 0; c < kTile; ++c) {
      if (c >= first && c < last) Store(tile[c], target + c * rows + r0);
    }
  }
  TransposeScalar(source, target, rows, columns, r0, rows, first, last);
}

/// The last tiles overlap those before them instead of being smaller: the same elements are written twice.
COLLAGE_INLINE void TransposeTiles(const uint32_t* source, uint32_t* target, int64_t rows, int64_t columns,
                                   int64_t first, int64_t last) {
  for (int64_t block_c = first; block_c < last; block_c += kBlock) {
    for (int64_t block_r = 0; block_r < rows; block_r += kBlock) {
      for (int64_t c = block_c; c < std::min(block_c + kBlock, last); c += kTile) {
        for (int64_t r = block_r; r < std::min(block_r + kBlock, rows); r += kTile) {
          const int64_t c0 = std::min(c, last - kTile);
          const int64_t r0 = std::min(r, rows - kTile);
          Lanes tile[kTile];
#pragma GCC unroll 8
          for (int64_t i = 0; i < kTile; ++i) Load(tile[i], source + (r0 + i) * columns + c0);
          TransposeTile(tile);
#pragma GCC unroll 8
          for (int64_t i = 0; i < kTile; ++i) Store(tile[i], target + (c0 + i) * rows + r0);
        }
      }
    }
  }
}

}  // namespace

COLLAGE_CLONES void TransposeWords(const uint32_t* source, uint32_t* target, int64_t rows, int64_t columns,
                                   int64_t first, int64_t last) {
  if (rows < kTile && rows > 0) return TransposeFewRows(source, target, rows, columns, first, last);
  if (columns < kTile) return TransposeFewColumns(source, target, rows, columns, first, last);
  if (last - first < kTile) return TransposeScalar(source, target, rows, columns, 0, rows, first, last);
  TransposeTiles(source, target, rows, columns, first, last);
}

}  // namespace collage
