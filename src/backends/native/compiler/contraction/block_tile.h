// block_tile.h: tiles of products that all warps of a block compute together with tensor cores (block_plan.h).
//
// Threads copy words of both factors to shared memory some steps before they are multiplied (cp.async): 16 bytes at a
// time where these lie together, else word by word. Shared memory has `depth` words of each row and column at a time,
// in pieces of 16 bytes, whose order differs from row to row so that eight rows use all banks (a swizzle by exclusive
// or). There ldmatrix finds the fragments of mma.sync, and wgmma its columns: it knows this order as a swizzle of 64 or
// 128 bytes (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout"). Sums pass through the same memory to
// become rows.
#pragma once

#include <string>
#include <string_view>

#include "backends/native/compiler/contraction/block_plan.h"
#include "backends/native/compiler/contraction/tensor_product.h"

namespace collage::native {

/// Writes such tiles of a product, which must outlive it.
class BlockTile {
 public:
  /// Whether blocks compute `form`.
  static bool Takes(const PartitionState& state, const Contraction& form);
  /// Puts the words of `form`'s columns into quads, four rows of words side by side, if they are constant: those of a
  /// column then lie together. Other products cannot read such.
  static void UseQuads(PartitionState& state, const Contraction& form);

  BlockTile(PartitionState& state, const Contraction& form, const BlockPlan& plan);

  /// Columns of `form` that may be read.
  int64_t ColumnsRead() const;

  /// Begins a function whose units are tiles.
  void Begin();
  /// A tile: its rows from `row` and its columns from the first of `panel` on, of which there may be fewer.
  struct Place {
    I64s outer;
    I64 row, panel;
    I64 rows_left, columns_left;  ///< rows and columns that may be read, from its first ones on
  };
  /// Writes the sums of steps `from` to `to` - 1 of a tile, and leaves them in shared memory.
  void Multiply(const Place& place, const I64& from, const I64& to);
  /// `body` for each row of the tile, of which there are `count`, that this warp is to look at.
  void ForRows(const I64& count, const std::function<void(const I64& row)>& body);
  /// The sums of 32 columns from `column` on, after Multiply.
  Vector Sums(const I64& row, int64_t column);

 private:
  /// One of the two factors of a product, and how threads share its copies: pieces of `words` words, of which each row
  /// has `per_row`. Neighbouring threads copy pieces of one row, or the same piece of neighbouring rows (`is_across`).
  struct Factor {
    bool is_data = true;
    int64_t rows = 0;
    int64_t words = 1;
    int64_t per_row = 1;
    bool is_across = false;
    int64_t row_stride = 1;    ///< in memory, in words
    int64_t piece_stride = 1;  ///< from piece to piece
    int64_t begin = 0;         ///< in a stage, in bytes
    bool has_all_rows = false;
    // In the function that is being written:
    Vector row, piece;  ///< a thread's first one
    Vectors offsets;    ///< the pieces that it copies, in words of memory
    Ptr base;
  };

  /// One of the pieces that a thread copies: how many rows and pieces behind the first one.
  struct Step {
    int64_t rows, pieces;
  };
  int64_t Threads() const { return plan_.warps() * kWarpLanes; }
  std::vector<Step> StepsOf(const Factor& factor) const;
  Factor DataFactor() const;
  Factor ConstantFactor(bool has_quads) const;

  // ---- vectors of i32 ----
  Vector Number(int64_t value);
  Vector Number(const I64& value);
  Vector Op(std::string_view op, const Vector& a, const Vector& b);
  Vector Op(std::string_view op, const Vector& a, int64_t b) { return Op(op, a, Number(b)); }
  /// Offsets of `index` in dimensions of sizes and strides `parts`, the last one innermost.
  Vector Offsets(Vector index, const std::vector<Contraction::Part>& parts);
  /// Bytes in a stage of word `word` of row `row`.
  Vector PlaceOf(const Vector& row, const Vector& word);

  void BeginFactor(Factor& factor, const Place& place);
  void Copy(const Place& place, const I64& step, const I64& stage);
  void CopyFactor(Factor& factor, const Place& place, const I64s& inner, const Vector& stage);
  /// Bytes of piece `piece` that there are, from the step's first word on.
  Vector BytesOf(const Factor& factor, const Vector& piece, const I64& words_left);
  Vectors MultiplyStage(const I64& stage, const Vectors& sums);
  /// Words `word` to `word` + 7 of 16 rows of this warp, from its row `row` on.
  Vectors LoadRows(const Vector& stage, int64_t row, int64_t word);
  Vectors MultiplyGroup(const I64& stage, const Vectors& sums);
  void WriteSums(const Vectors& sums);

  Emitter& e_;
  const Contraction& form_;
  BlockPlan plan_;
  TensorProduct product_;
  std::string multiply_group_;
  int64_t panel_;  ///< columns of a panel
  Factor a_, b_;
  bool has_rounded_columns_;  ///< whether b's words were rounded when they were packed
  // In the function that is being written:
  I64 warp_;
  Vector thread_;
};

}  // namespace collage::native
