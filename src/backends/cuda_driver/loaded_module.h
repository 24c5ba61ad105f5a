// loaded_module.h: a GPU's code, loaded.
#pragma once

#include <span>
#include <string>

#include "backends/cuda_driver/driver.h"
#include "backends/cuda_driver/gpu_kernel.h"

namespace collage::cuda_driver {

/// An image that is loaded, until this ends. Made and destroyed in the GPU's context.
class LoadedModule {
 public:
  /// Loads the first of `images`, made for `architecture`, that this GPU can run. Throws kUnavailable where there is
  /// none; `toolchain` made them.
  LoadedModule(const Driver& driver, std::span<const GpuImage> images, const std::string& architecture,
               const char* toolchain);
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  ~LoadedModule() { driver_.ModuleUnload(module_); }

  /// The function, whose launches may share `shared_bytes`.
  Function Find(const std::string& name, int64_t shared_bytes = 0) const;
  /// Lets launches of `function` share that many bytes.
  void ReserveShared(Function function, int64_t shared_bytes) const;

 private:
  const Driver& driver_;
  Module module_ = nullptr;
};

}  // namespace collage::cuda_driver
