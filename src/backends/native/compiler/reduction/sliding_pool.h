// sliding_pool.h: pools whose windows overlap or lie side by side, row by row of windows.
#pragma once

#include "backends/native/compiler/reduction/pool_form.h"

namespace collage::native {

/// Emits a pool whose lanes run along channels, or along the last dimension of at least two. What the windows of a row
/// of them have in common is combined once and stays in registers: columns of channels-last data, rows of planes.
/// False, with nothing emitted, where that is too much for registers.
bool EmitSlidingPool(PoolForm& form);

}  // namespace collage::native
