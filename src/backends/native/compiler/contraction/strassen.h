// strassen.h: products of matrices with seven products of halves in place of eight.
#pragma once

#include "backends/native/compiler/contraction/contraction.h"

namespace collage::native {

/// Emits a product of float32 by Strassen's algorithm (Strassen 1969), as Winograd arranged it, where its right matrix
/// is `right`, a constant that would be packed as `packing` says, and where that is faster; False, and nothing is
/// emitted, for all others. `form` has no address of b yet.
bool EmitStrassen(PartitionState& state, const Contraction& form, const Expr& right, const PackedWeights& packing,
                  const StageOutput& output);

}  // namespace collage::native
