// pool.h: the largest or mean element of windows.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

void EmitPool(PartitionState& state, const CallNode& call, const StageOutput& output);
/// As EmitPool, for dynamic shapes.
void EmitDynamicPool(PartitionState& state, const CallNode& call, const StageOutput& output);

}  // namespace collage::native
