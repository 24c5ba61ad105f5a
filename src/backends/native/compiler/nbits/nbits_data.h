// nbits_data.h: the data of products with weights of few bits: floats, or bytes with a step for each block.
#pragma once

#include "backends/native/compiler/nbits/nbits_weights.h"

namespace collage::native {

/// Data [rows, depth] of float32, each row without gaps, filled up with zeros to whole blocks.
Buffer FloatRows(PartitionState& state, const Expr& data, const NBitsWeights& weights);

/// Data rounded to bytes: a block's numbers are bytes times its step, of which the largest byte is 127.
struct ByteRows {
  Buffer bytes;  ///< int8 [rows, depth]
  Buffer steps;  ///< float32 [rows, blocks]
  /// int32 [rows, blocks]: minus the zero point that all weights share, times the sum of a block's bytes; or only the
  /// sum.
  Buffer starts;
};
/// Writes the stage that rounds `rows` (FloatRows).
ByteRows RoundToBytes(PartitionState& state, const Buffer& rows, const NBitsWeights& weights);

}  // namespace collage::native
