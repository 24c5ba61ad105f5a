// scatter.h: scatter_elements and scatter_nd.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

void EmitScatter(PartitionState& state, const CallNode& call, const StageOutput& output);

}  // namespace collage::native
