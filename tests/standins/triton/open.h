// open.h: computes images that the toolchain triton makes for the architecture "emulated": Triton's intermediate
// representation as text.
#pragma once

#include <memory>
#include <vector>

#include "../emulation.h"

namespace standin {

/// The kernel of `image`; none if it is not such an image.
std::vector<std::unique_ptr<EmulatedKernel>> OpenTriton(const void* image);

}  // namespace standin
