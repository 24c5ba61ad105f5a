// tensor_cores.h: what a GPU's tensor cores compute.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cuda_driver/emulation.h"

namespace standin {

/// mma.sync: `words` has, for each thread of a warp, 4 words of 16 rows, 2 of 8 columns, and 4 sums, to which the
/// products are added (PTX ISA, "Matrix Fragments for mma").
void MultiplyBlocks(collage::cuda_driver::EmulatedProduct product, const std::array<uint32_t*, 32>& words);

/// ldmatrix.x4: `rows` has 16 bytes of each thread, row r of matrix i from thread 8 i + r. Thread 4 r + w gets word w
/// of row r of each matrix in `words` (PTX ISA, "ldmatrix").
void LoadMatrices(const std::array<const void*, 32>& rows, const std::array<uint32_t*, 32>& words);

}  // namespace standin
