// nbits_product.h: qnn.matmul_nbits, whose weights stay as they are packed until they are in registers, or in a panel
// that the cache keeps.
//
// A word of 32 bits holds numbers of one channel: byte j has those of positions j, 4 + j …, the first in its lowest
// bits. So its numbers are taken out by one shift and one mask each, four bytes at a time for products of bytes, and
// words of neighbouring channels are the lanes of a vector. Scales and zero points follow in the order of blocks.
#pragma once

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// Data are floats, or, where the toolchain's options ask for it, are rounded to 8 bits with a scale for each block,
/// and products are added up as integers within a block.
void EmitNBitsProduct(PartitionState& state, const CallNode& call, const StageOutput& output);
/// As EmitNBitsProduct, for dynamic numbers of rows; data stay floats.
void EmitDynamicNBitsProduct(PartitionState& state, const CallNode& call, const StageOutput& output);

}  // namespace collage::native
