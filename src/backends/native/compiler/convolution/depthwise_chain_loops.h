// depthwise_chain_loops.h: a depthwise convolution and the 1x1 convolutions around it, row block by row block.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"
#include "backends/native/description/depthwise_chain.h"

namespace collage::native {

/// Whether the depthwise convolution of `chain` can read rows that are never in memory together: without an expansion
/// it reads others.
bool ReadsRing(PartitionState& state, const DepthwiseChain& chain);

/// Writes the stages of `chain`; `output.result` is its last convolution. Its expansion, if it has one, is one of which
/// the above holds.
void EmitDepthwiseChain(PartitionState& state, const DepthwiseChain& chain, const StageOutput& output);

}  // namespace collage::native
