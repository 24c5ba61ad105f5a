// concatenate.h: concatenate and stack.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

void EmitConcatenate(PartitionState& state, const CallNode& call, const StageOutput& output);

}  // namespace collage::native
