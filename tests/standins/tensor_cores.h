// tensor_cores.h: what a GPU's tensor cores compute.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cuda_driver/emulation.h"

namespace standin {

/// mma.sync: `words` has, for each thread of a warp, 4 words of 16 rows, 2 of 8 columns, and 4 sums, to which the
/// products are added (PTX ISA, "Matrix Fragments for mma").
void MultiplyBlocks(collage::cuda_driver::EmulatedProduct product, const std::array<uint32_t*, 32>& words);

/// A product of four warps.
struct GroupProduct {
  collage::cuda_driver::EmulatedProduct product = {};
  uint32_t columns = 0;
  uint32_t depth = 0;  ///< words of a row and of a column

  /// Bytes of eight columns, after which the order of pieces repeats.
  uint64_t PatternBytes() const { return uint64_t{8} * depth * 4; }
  bool operator==(const GroupProduct&) const = default;
};
/// wgmma: `words` has a thread's sums and words of rows of each of four warps, which have 16 rows each, as mma.sync has
/// them. `matrix`: columns one behind the other, swizzled by as many bytes as each has (PTX ISA, "Asynchronous
/// Warpgroup Level Matrix Shared Memory Layout").
void MultiplyGroup(const GroupProduct& group, const std::byte* matrix, const std::array<uint32_t*, 128>& words);

/// ldmatrix.x4: `rows` has 16 bytes of each thread, row r of matrix i from thread 8 i + r. Thread 4 r + w gets word w
/// of row r of each matrix in `words` (PTX ISA, "ldmatrix").
void LoadMatrices(const std::array<const void*, 32>& rows, const std::array<uint32_t*, 32>& words);

}  // namespace standin
