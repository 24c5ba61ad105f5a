// winograd.h: 3x3 convolutions by minimal filtering.
#pragma once

#include "backends/native/compiler/convolution.h"

namespace collage::native {

/// Emits a 2-d convolution of float32 with constant 3x3 taps, stride 1, no dilation and no groups by Winograd's
/// algorithm where that is faster. False, and nothing is emitted, for all others.
bool EmitWinograd(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                  const StageOutput& output);

}  // namespace collage::native
