// winograd.h: convolutions by minimal filtering.
#pragma once

#include "backends/native/compiler/convolution/convolution.h"

namespace collage::native {

/// Emits a convolution of float32 over one to three axes, of constant taps, 1, 3, 5 or 7 along each axis, with stride
/// 1, no dilation and no groups by Winograd's algorithm where that is faster; its products in bfloat16 where the
/// options say so. False, and nothing is emitted, for all others.
bool EmitWinograd(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                  const StageOutput& output);

}  // namespace collage::native
