// reduction.h: reductions, the position of a largest or smallest element, and cumulative sums.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

void EmitReduction(PartitionState& state, const CallNode& call, const StageOutput& output);
/// Reduces rows of floats and fills `output` with its epilogue, of the rows' shape, while they are in the nearest
/// cache. False, with nothing emitted, where vectors do not run along rows.
bool EmitOverRows(PartitionState& state, const CallNode& reduction, const StageOutput& output);
void EmitArgReduction(PartitionState& state, const CallNode& call, const StageOutput& output);
void EmitCumulativeSum(PartitionState& state, const CallNode& call, const StageOutput& output);

}  // namespace collage::native
