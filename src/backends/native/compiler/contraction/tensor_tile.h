// tensor_tile.h: register tiles whose sums a GPU's tensor cores compute, all threads of a warp together.
//
// A tile is cut into blocks of 16 rows and 8 columns. Thread 4 g + t has columns 2 t and 2 t + 1 of rows g and g + 8 of
// a block, which is what the instruction mma.sync leaves behind (PTX ISA, "Matrix Fragments for mma.m16n8k8"). It
// reads words of 32 bits: one number, two of 16 bits, or four bytes. The instruction wants thread t to have words t and
// t + 4 of a row's 8; sums do not depend on the order of their terms, so that thread t takes words 4 t to 4 t + 3 of 16
// for two instructions: 16 bytes that lie together. Constant panels are stored so that this holds for columns, too:
// four rows of words side by side ("quads").
#pragma once

#include <string>

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// Writes the sums of register tiles of a product, which must outlive it, for a warp.
class TensorTile {
 public:
  /// Whether tensor cores compute such sums: there are some, and they multiply such factors.
  static bool Multiplies(const PartitionState& state, DataType dtype, DotKind factors);
  /// Whether they compute those of `form`: words lie at even distances.
  static bool Takes(const PartitionState& state, const Contraction& form);

  /// Puts the words of `form`'s columns into quads, if they are constant. Products that read such must be taken.
  static void UseQuads(PartitionState& state, const Contraction& form);

  TensorTile(PartitionState& state, const Contraction& form);

  /// The most rows of a tile of `form`: words that are loaded as they are needed take registers.
  static int64_t MostRows(const PartitionState& state, const Contraction& form);

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
  /// The addresses of each thread's first word.
  std::string Addresses(const Ptr& base, const Words& words);
  /// Four words of each thread, of which those of the last `left` of 16 are read. Others are 0.
  Vectors Load(const Ptr& base, const Words& words, int64_t left);
  /// Words of the data as they are multiplied.
  Vectors Prepared(Vectors words, bool is_data);
  Vectors Accumulate(const I64s& inner, const Vectors& sums);
  /// Up to 16 words of the innermost dimension.
  Vectors Step(const I64s& inner, int64_t left, const Vectors& sums);
  /// Adds the products of words of rows, two entries for each block, and of columns.
  Vectors Multiplied(const std::vector<Vectors>& rows, const std::vector<Vectors>& columns, Vectors sums);

  // Words are copied to memory of the thread some steps before they are multiplied:
  /// The number of steps whose copies are on their way or being multiplied; 0: words are loaded as they are needed.
  int64_t StepsAhead() const;
  int64_t NumSteps() const;
  Vectors AccumulateAhead(const Vectors& sums);
  /// Copies the words of step `step`, if there is one, as one group.
  void CopyAhead(const I64& step);
  Vectors CopiedStep(const I64& step, const Vectors& sums);
  Vector Zeros();
  /// Blocks of 16 rows and 32 columns as 16 vectors, a row each.
  Vectors AsRows(const Vectors& block);

  Emitter& e_;
  const Contraction& form_;
  int64_t shared_bytes_;  ///< for a warp
  std::string type_;      ///< the type of vectors of sums
  std::string words_;     ///< the type of vectors of words
  std::string multiply_, write_, read_;
  bool has_quads_;
  // The tile that is being written:
  I64s outer_;
  I64 row_, panel_;
  std::vector<Words> row_words_, column_words_;
  int64_t ahead_ = 0;    ///< StepsAhead
  int64_t blocks_ = 0;   ///< blocks of 16 rows
  int64_t columns_ = 0;  ///< blocks of 8 columns
};

}  // namespace collage::native
