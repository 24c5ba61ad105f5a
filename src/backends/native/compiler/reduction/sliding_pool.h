// sliding_pool.h: pools whose windows overlap or lie side by side, one row of windows after the other.
#pragma once

#include "backends/native/compiler/reduction/pool_form.h"

namespace collage::native {

/// Emits a pool whose lanes run along channels, or along the last dimension of at least two. The elements that
/// neighbouring windows share are combined once and stay in registers: columns of channels-last data, rows of planes.
/// False, with nothing emitted, where that is too much for registers.
bool EmitSlidingPool(PoolForm& form);

}  // namespace collage::native
