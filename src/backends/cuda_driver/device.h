// device.h: the GPU as kernels of NVIDIA's toolchains see it.
#pragma once

#include "backends/cuda_driver/driver.h"
#include "collage/runtime/device.h"
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

}  // namespace collage::cuda_driver
