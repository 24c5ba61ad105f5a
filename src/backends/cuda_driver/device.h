// device.h: the GPU as kernels of NVIDIA's toolchains see it.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backends/cuda_driver/driver.h"
#include "collage/runtime/device.h"
#include "collage/runtime/tensor.h"
#include "collage/support/error.h"

namespace collage::cuda_driver {

class CudaDevice : public Device {
 public:
  /// Makes the GPU's context that of the calling thread. Returns the stream that all work goes to.
  virtual Stream Enter() = 0;
};

/// The GPU of this process. Throws as GetDevice does.
inline CudaDevice& GetCudaDevice() {
  auto* device = dynamic_cast<CudaDevice*>(&GetDevice(Memory::kCuda));
  if (device == nullptr) throw Error(ErrorCategory::kInternal, "another device stands in for the GPU");
  return *device;
}

/// Copies the constants of a kernel to the GPU.
inline std::vector<DeviceBuffer> CopyConstants(CudaDevice& device, std::span<const Tensor> constants) {
  std::vector<DeviceBuffer> buffers;
  for (const Tensor& constant : constants) {
    buffers.emplace_back(Memory::kCuda, std::max<size_t>(constant.size_bytes(), 1));
    device.CopyIn(buffers.back().address(), constant.raw(), constant.size_bytes());
  }
  return buffers;
}

}  // namespace collage::cuda_driver
