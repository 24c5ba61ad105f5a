// normalisation.h: softmax, and norms of layers, groups and instances.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

void EmitNormalisation(PartitionState& state, const CallNode& call, const StageOutput& output);

}  // namespace collage::native
