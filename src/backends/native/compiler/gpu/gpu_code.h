// gpu_code.h: kernels for NVIDIA GPUs out of loops that were written for vectors of 32 lanes.
#pragma once

#include <vector>

#include "backends/native/description/options.h"
#include "collage/target/toolchain.h"

namespace collage::native {

/// The loader of such kernels.
inline constexpr const char* kGpuLoader = "cuda";

/// Compiles `lowered`, written for such options, to PTX and, where ptxas is installed, to machine code of the GPU that
/// they name. Throws kUnsupported for what no warp of a GPU can do.
CompiledPartition CompileForGpu(const LoweredPartition& lowered, const NativeOptions& options);

/// MLIR, and PTX where there is any.
std::vector<Listing> GpuListings(const CompiledPartition& compiled);

}  // namespace collage::native
