// kernel.h: a partition as a blob: images of one kernel, and what it is launched with.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda_driver/gpu_kernel.h"
#include "collage/runtime/tensor.h"

namespace collage::triton {

/// The kernel's symbol.
inline constexpr const char* kKernelName = "collage_kernel";

/// The beginning of an image for the emulated architecture; Triton's intermediate representation as text follows, and a
/// 0.
inline constexpr const char* kEmulatedText = "// kernel of Triton\n";

/// A tensor that a kernel reads.
struct ReadTensor {
  bool is_constant = false;
  int64_t number = 0;  ///< the input's or constant's
  int64_t bytes = 0;   ///< its size
};

/// The kernel's parameters are addresses: of what it reads, of its result, and of scratch memory, which it has none of.
struct TritonKernel {
  std::string architecture;  ///< GPUs that it is for: "sm_90"
  std::string made_by;       ///< "Triton 3.9.0"
  std::vector<ReadTensor> reads;
  int64_t num_parameters = 0;
  std::vector<int64_t> grid;  ///< blocks along x and y
  int64_t warps = 4;          ///< in a block
  int64_t shared_bytes = 0;   ///< threads of a block share
  std::vector<cuda_driver::GpuImage> images;
};

std::vector<std::byte> ToBlob(const TritonKernel& kernel);
/// Throws kCorrupt for what ToBlob did not make, and where a constant is missing or smaller than what is read of it.
TritonKernel TritonKernelFrom(std::span<const std::byte> blob, std::span<const Tensor> constants);

}  // namespace collage::triton
