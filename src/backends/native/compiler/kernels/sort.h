// sort.h: sort, argsort and topk.
#pragma once

#include <vector>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

void EmitSort(PartitionState& state, const CallNode& call, const StageOutput& output);
/// `outputs` are the buffers of its fields.
void EmitTopK(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs);

}  // namespace collage::native
