// epilogue.h: what is computed from an anchor's value before it is stored.
#pragma once

#include <vector>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// Whether the value at `root` is made from that of `anchor` by operators that take each element from the same
/// element, and what else it reads does not need the anchor.
bool IsEpilogue(const Expr& root, const Expr& anchor);

/// Stores, at `indices` of the result, the epilogue of the anchor's `value`.
void StoreResult(PartitionState& state, const StageOutput& output, const Indices& indices, const Value& value);

/// Whether the `axes` of a result, innermost last, may be walked as one while its epilogue is computed from the
/// anchor's value: `stride` elements from one place to the next in all that is read and written along them.
bool CanMerge(PartitionState& state, const StageOutput& output, const std::vector<int>& axes, int64_t stride);

}  // namespace collage::native
