// tensor_cores.h: what a GPU's tensor cores compute.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cuda_driver/emulation.h"

namespace standin {

/// mma.sync: `words` has, for each thread of a warp, 4 words of 16 rows, 2 of 8 columns, and 4 sums, to which the
/// products are added (PTX ISA, "Matrix Fragments for mma").
void MultiplyBlocks(collage::cuda_driver::EmulatedProduct product, const std::array<uint32_t*, 32>& words);

}  // namespace standin
