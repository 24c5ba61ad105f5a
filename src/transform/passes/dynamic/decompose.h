// decompose.h: operators of dynamic shapes that have no kernel, as combinations of others that have one.
#pragma once

#include <functional>

#include "collage/ir/module.h"

namespace collage {

/// Returns `module`, typed, with transposed convolutions of images whose sizes are dynamic as convolutions of stride 1,
/// whose channels are then spread over the pixels:
///
///     y[u] = sum over j of x[u / s - j] * w[u % s + j * s]          u: position in the result before it is cropped
///
/// so that each remainder of u is a convolution of its own, with a part of the weights. Only calls with constant
/// weights that `takes` does not accept as they are; static shapes stay, and so do images of known size in a dynamic
/// batch.
IRModule DecomposeDynamic(const IRModule& module, const std::function<bool(const CallNode& call)>& takes);

}  // namespace collage
