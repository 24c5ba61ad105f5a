// attention_loops.h: attention in one pass: scores are in the cache for as long as a few rows of them are used.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"
#include "backends/native/description/attention.h"

namespace collage::native {

/// Writes the stages of `attention`; `output.result` is its last product.
void EmitAttention(PartitionState& state, const Attention& attention, const StageOutput& output);

}  // namespace collage::native
