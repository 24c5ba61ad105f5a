// nbits_weights.h: weights of 2, 4 or 8 bits as loops over panels of channels read them.
//
// A word of 32 bits holds numbers of one channel that follow each other: byte j has those at j, 4 + j, 8 + j …, the
// first in its lowest bits. One shift and one mask take a number out of a word, or four at a time, as bytes in their
// order. Words of neighbouring channels are the lanes of a vector. A block's scales and zero points lie apart from
// them.
#pragma once

#include <optional>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// The weights of a call of qnn.matmul_nbits, which are known, packed as constants of the partition.
class NBitsWeights {
 public:
  NBitsWeights(PartitionState& state, const CallNode& call);

  int64_t channels() const { return channels_; }
  int64_t width() const { return width_; }  ///< channels of a panel
  int64_t panels() const { return (channels_ + width_ - 1) / width_; }
  int64_t block() const { return block_; }
  int64_t blocks() const { return blocks_; }
  int64_t depth() const { return blocks_ * block_; }  ///< positions, those that fill the last block included
  int64_t per_word() const { return kWordBits / bits_; }
  int64_t words_per_block() const { return block_ / per_word(); }
  int64_t vectors() const;  ///< in a panel
  /// The zero point of all blocks, if they share an integer.
  std::optional<int64_t> zero() const { return zero_; }

  /// The words of vector `vector` of `panel` at word `word`.
  Vector Words(const I64& panel, const I64& word, int vector) const;
  /// Fetches words that are `bytes` behind those of a block.
  void FetchAhead(const I64& panel, const I64& block, int64_t bytes) const;
  /// Float32: what a block's numbers are multiplied by.
  Vector Scales(const I64& panel, const I64& block, int vector) const;
  /// Float32: what is subtracted from a block's numbers. Only where they share no zero point.
  Vector Zeros(const I64& panel, const I64& block, int vector) const;

  /// The numbers at `position` of `words` as float32, less the zero point that they share, or `zeros`.
  Vector Numbers(const Vector& words, int64_t position, const Vector& zeros) const;
  /// The numbers at positions 4 * `group` to 4 * `group` + 3, less `byte_offset`, as the bytes of words.
  Vector Bytes(const Vector& words, int64_t group) const;
  /// Numbers of 8 bits get a sign where no instruction multiplies larger ones without losing some.
  int64_t byte_offset() const { return bits_ == 8 && !state_.target.has_byte_products ? 128 : 0; }

 private:
  static constexpr int64_t kWordBits = 32;

  void PackWords(const Tensor& numbers);
  void PackScales(const Tensor& scales);
  void PackZeros(const Tensor* zeros);
  Vector PerBlock(const Buffer& buffer, const I64& panel, const I64& block, int vector) const;
  std::string WordType() const;
  std::string WordOp(const char* op, const Vector& words, int64_t operand) const;

  PartitionState& state_;
  Emitter& e_;
  int64_t bits_, block_, blocks_, channels_, width_;
  std::optional<int64_t> zero_;
  Buffer words_;   ///< int32 [panels, words, width]
  Buffer scales_;  ///< [panels, blocks, width]: float32, or what is narrower and as exact
  Buffer zeros_;   ///< likewise
};

}  // namespace collage::native
