// recurrent.h: nn.lstm, nn.gru and nn.rnn.
#pragma once

#include <vector>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// `outputs` are the buffers of its fields.
void EmitRecurrent(PartitionState& state, const CallNode& call, const std::vector<Buffer>& outputs);

}  // namespace collage::native
