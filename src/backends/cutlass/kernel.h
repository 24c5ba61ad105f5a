// kernel.h: a partition as a blob: an image of CUTLASS kernels, and what they are launched with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda_driver/gpu_kernel.h"
#include "backends/cutlass/arguments.h"
#include "collage/runtime/tensor.h"

namespace collage::cutlass {

/// The place of a tensor that a kernel reads.
struct Place {
  static constexpr int64_t kNone = -1;

  bool is_constant = false;
  int64_t number = kNone;  ///< the input's or constant's

  bool is_none() const { return number == kNone; }
};

struct CutlassKernel {
  std::string architecture;  ///< GPUs that it is for: "sm_90"
  std::string made_by;       ///< "CUTLASS 4.2.0, CUDA 13.0.88"
  Place a, b, bias, other;
  cutlass_interface::Problem problem{};
  int element_bytes = 4, result_bytes = 4;
  /// Images that lie plain are moved: where they lie channels-last in the workspace meanwhile; kNone: they do so
  /// anyway.
  int64_t moved_a = Place::kNone, moved_other = Place::kNone, moved_result = Place::kNone;
  int64_t channels = 0;  ///< the data's before it is moved; the problem's may be more
  double low = 0, high = 0;
  std::vector<cuda_driver::GpuImage> images;
};

/// Places what is moved in a workspace, and returns its size.
size_t PlaceMoved(CutlassKernel& kernel);

std::vector<std::byte> ToBlob(const CutlassKernel& kernel);
/// Throws kCorrupt for what ToBlob did not make, and where a constant is missing or smaller than what is read of it.
CutlassKernel CutlassKernelFrom(std::span<const std::byte> blob, std::span<const Tensor> constants);

}  // namespace collage::cutlass
