// narrowing.h: which products are of pairs of narrow factors: in bfloat16 or float16 where options ask for that, and,
// on GPUs, of float16 values. The rule for candidates and the compiler ask the same question, so that no candidate is
// offered that would have no such product.
#pragma once

#include "backends/native/description/options.h"
#include "collage/ir/expr.h"

namespace collage::native {

/// How a product may be computed of pairs.
enum class Narrowing : uint8_t {
  kNone,         ///< not at all
  kTransformed,  ///< by Winograd's algorithm alone, which pads odd numbers of channels with zeros
  kPairs,        ///< by every algorithm: the summed dimension consists of whole pairs
  kBytes,        ///< not of pairs, but of data in 8 bits by weights of few
};

/// Returns the narrowing of a typed call under `options`: products of float32 values are narrowed if they ask for it,
/// unless lanes over groups of few channels, or 8-bit integers, are faster; products of float16 values are on GPUs.
Narrowing NarrowingOf(const CallNode& call, const NativeOptions& options);

/// The type of the factors of a product that is narrowed.
DataType FactorType(const CallNode& call, const NativeOptions& options);

/// Whether a convolution of `groups`, of `channels_in` to `channels_out`, has groups that vectors of `lanes` hold
/// several of: each of as many channels before and behind it.
bool HasSmallGroups(int64_t groups, int64_t channels_in, int64_t channels_out, int64_t lanes);

}  // namespace collage::native
