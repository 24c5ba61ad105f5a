// determinant.h: determinants.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// linalg.det.
void EmitDeterminant(PartitionState& state, const CallNode& call, const StageOutput& output);

}  // namespace collage::native
