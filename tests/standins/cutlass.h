// cutlass.h: computes images that the toolchain cutlass makes for the architecture "emulated": instances of CUTLASS's
// templates as JSON.
#pragma once

#include <memory>
#include <vector>

#include "emulation.h"

namespace standin {

/// The kernels of `image`, collage_prepare, collage_run and collage_move; none if it is not such an image.
std::vector<std::unique_ptr<EmulatedKernel>> OpenInstance(const void* image);

}  // namespace standin
