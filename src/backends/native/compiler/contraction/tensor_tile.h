// tensor_tile.h: register tiles whose sums a GPU's tensor cores compute for a loop of one warp's. Products as a whole
// are computed by blocks of warps (block_tile.h).
//
// A tile is cut into blocks of 16 rows and 8 columns (tensor_product.h). The instruction wants thread t to have words t
// and t + 4 of a row's 8; sums do not depend on the order of their terms, so that thread t takes words 4 t to 4 t + 3
// of 16 for two instructions, which lie together.
#pragma once

#include <string>

#include "backends/native/compiler/contraction/tensor_product.h"

namespace collage::native {

/// Writes the sums of register tiles of a product, which must outlive it, for a warp.
class TensorTile {
 public:
  TensorTile(PartitionState& state, const Contraction& form);

  /// As RegisterTile::Emit.
  Vectors Emit(const I64s& outer, const I64& row, int64_t rows, const I64& panel, int64_t first, int vectors,
               int64_t width);

 private:
  /// The places of a thread's words, before the word's own number.
  struct Words {
    std::string places;       ///< a vector of i64, in words
    int64_t behind = 0;       ///< words behind these
    int64_t stride = 1;       ///< from one of a thread's four words to the next
    bool is_aligned = false;  ///< whether the four are 16 bytes at a multiple of 16
  };

  /// A constant vector of i64.
  std::string Numbers(const std::function<int64_t(int64_t lane)>& number);
  /// The words of row block `block`, rows g (`half` 0) or g + 8 (1).
  Words WordsOfRow(int64_t block, int64_t half, int64_t rows);
  /// The words of the 8 columns from `column` on. No more than `width` columns exist.
  Words WordsOfColumn(int64_t column, int64_t width);
  /// Four words of each thread, of which those of the last `left` of 16 are read. Others are 0.
  Vectors Load(const Ptr& base, const Words& words, int64_t left);
  Vectors Accumulate(const I64s& inner, const Vectors& sums);
  /// Up to 16 words of the innermost dimension.
  Vectors Step(const I64s& inner, int64_t left, const Vectors& sums);
  /// Blocks of 16 rows and 32 columns as 16 vectors, a row each.
  Vectors AsRows(const Vectors& block);

  Emitter& e_;
  const Contraction& form_;
  TensorProduct product_;
  // The tile that is being written:
  I64s outer_;
  I64 row_, panel_;
  std::vector<Words> row_words_, column_words_;
  int64_t blocks_ = 0;   ///< blocks of 16 rows
  int64_t columns_ = 0;  ///< blocks of 8 columns
};

}  // namespace collage::native
