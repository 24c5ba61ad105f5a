// int8_dot.h: products of integers of 8 bits less their zero points, exactly, by instructions that multiply two or
// four of them at a time and add the products to a sum of 32 bits.
//
// Two or four neighbours of the innermost dimension that is summed over lie in four bytes: memory of such words is
// described as int32 with so many times fewer elements in that dimension, and loops over it are those of int32.
//
// kBytes (VPDPBUSD) takes data without sign and weights with one, as they lie in memory. With x = q - zero,
//
//     sum of x * w  =  sum of q * w  -  zero * (sum of w)
//
// Sums begin with the last term: a constant, unless the zero point is known at run time only. Signed data are flipped
// to unsigned, which moves their zero point by 128. kInt16 (VPDPWSSD, or VPMADDWD and an addition) takes q - zero and
// weights of up to 16 bits; data are widened in memory. Neither saturates. VPMADDUBSW saturates and is not used.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// A product of data by weights of 8 bits, both integers less their zero points, or numbers that these stand for.
struct Int8Dot {
  DotKind factors = DotKind::kBytes;
  int64_t per_word = 4;  ///< factors in an element of the product
  Expr data;             ///< the data as they lie in memory, elements of `dtype`
  DataType dtype = kUInt8;
  int64_t zero = 0;  ///< the element that stands for the number 0,
  Expr late_zero;    ///< or, if it is known at run time only, an integer of one element
  bool flips_signs = false;
  Tensor weight;     ///< a known weight less its zero points: int32, of the weight's shape
  Expr late_weight;  ///< otherwise, the integers less the zero point
  /// Factors that turn sums into real numbers: none, one, or one for each of the weight's channels.
  std::vector<float> scales;

  int64_t RoundUp(int64_t depth) const { return (depth + per_word - 1) / per_word * per_word; }
  /// The zero point in all lanes.
  Value Zero(PartitionState& state) const;
};

/// `data` times `weight`, whose dimension `channels` is that of the result's channels, as such a product; nothing where
/// it is none, or where the processor has no instructions for it. `is_padded`: data are read beyond their ends.
/// Weights that are not known are taken where `may_be_late`.
std::optional<Int8Dot> ReadInt8Dot(PartitionState& state, const Expr& data, const Expr& weight, size_t channels,
                                   bool is_padded, bool may_be_late);

/// A known weight with zeros behind the end of dimension `axis`, as many as make whole words.
void PadWeight(Int8Dot& product, size_t axis);

/// The data as matrices of words, row-major, words along the last dimension: of [rows, depth], or [batch, rows, depth].
/// `is_turned`: the data are [depth, rows].
Buffer WordMatrix(PartitionState& state, const Int8Dot& product, bool is_turned);

/// The data channels-last in words of channels, padded with the zero point around each spatial dimension.
Buffer WordImage(PartitionState& state, const Int8Dot& product, const std::vector<int64_t>& before,
                 const std::vector<int64_t>& after);

/// Packed weights, and numbers for each channel of each panel [groups, panels, width]. Buffers of numbers that are not
/// needed do not exist.
struct PackedWords {
  Buffer words;    ///< [groups, panels, product of inner / per_word, width]
  Buffer start;    ///< int32: the values that sums begin with
  Buffer slope;    ///< their increase for each 1 of a zero point that is known at run time only
  Expr late_zero;  ///< this zero point
  Buffer scale;    ///< float32: factors that turn sums into real numbers

  /// Has `form` use all but the words: groups are the first of its outer dimensions, or there is one for all.
  void ReadBy(Contraction& form, PartitionState& state) const;
};
/// `packing` is of the padded weight, or of one that is not known, whose last word is filled with zeros here.
PackedWords PackWords(PartitionState& state, const Int8Dot& product, const PackedWeights& packing);

/// sum + the products of the four bytes in each of `a`, without sign, and `b`, with one, for processors without an
/// instruction for them; all are vectors of int32.
Vector AddByteProducts(Emitter& e, const Vector& a, const Vector& b, const Vector& sum);

/// sum + the products of the integers in `a` and `b`; all are vectors of int32. `has_vnni`: multiplies and adds at
/// once.
Vector AddIntegerProducts(Emitter& e, DotKind factors, bool has_vnni, const Vector& a, const Vector& b,
                          const Vector& sum);

/// The sums of two neighbouring products of the bytes in `a`, without sign, and `b`, with one, which must fit 16 bits:
/// twice as many int16 as the words in which the bytes are. Takes SSSE3, AVX2 or AVX512-BW.
Vector BytePairs(Emitter& e, const Vector& a, const Vector& b);
/// Bytes with the products of those in `a` and `b`, the first without sign; all are words of bytes with signs, and none
/// in `b` is -128.
std::pair<Vector, Vector> SignsMoved(Emitter& e, const Vector& a, const Vector& b);

/// The bytes of `words`, a vector of int32, each plus 128.
Vector FlipSigns(Emitter& e, const Vector& words);

}  // namespace collage::native
