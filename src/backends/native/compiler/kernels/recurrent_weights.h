// recurrent_weights.h: the products of a recurrent layer that need no step, and the weights of the others.
#pragma once

#include <vector>

#include "backends/native/compiler/kernels/recurrent_layer.h"

namespace collage::native {

/// Writes the stages of shares[d][row][gate * H + neuron] = weight . x + biases, rows as they follow in the data: the
/// inputs' share of all gates at all times. Returns the shares.
Buffer EmitInputShare(PartitionState& state, const RecurrentLayer& layer);

/// Returns the rows of some gates of the recurrence as [D][block of neurons][k][gate][lane]: a constant when they are
/// known, else packed by stages.
Buffer PackRecurrence(PartitionState& state, const RecurrentLayer& layer, const std::vector<int64_t>& gates);

}  // namespace collage::native
