// nms.h: non-maximum suppression.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// vision.all_class_non_max_suppression; `outputs`: its rows, and how many count.
void EmitNonMaxSuppression(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs);

}  // namespace collage::native
