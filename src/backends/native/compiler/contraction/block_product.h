// block_product.h: products as a whole, computed by blocks of a GPU's warps.
#pragma once

#include "backends/native/compiler/contraction/block_tile.h"

namespace collage::native {

/// Emits the stages of a product that BlockTile takes: one that computes tiles, and, where blocks share sums, one that
/// adds their parts up.
void EmitBlockProduct(PartitionState& state, const Contraction& form, const StageOutput& output);

}  // namespace collage::native
