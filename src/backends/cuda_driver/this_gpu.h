// this_gpu.h: the GPU of this machine, as toolchains' descriptions learn of it.
#pragma once

#include <chrono>
#include <string>

#include "collage/support/result.h"
#include "collage/target/child_process.h"
#include "collage/target/toolchain_module.h"
#include "runtime/known_devices.h"
#include "support/dynamic_library.h"

namespace collage::cuda_driver {

inline constexpr int kCudaType = 2;  ///< DLDeviceType

/// A GPU's architecture, "sm_90", and words on it.
struct ThisGpu {
  std::string architecture;
  std::string description;
};

/// Asks the driver, which a process that forks workers must not have used, in a process of its own. The reason, from
/// `toolchain`, if there is no GPU, or no module `module` for it.
inline Result<ThisGpu> AskForGpu(const std::string& toolchain, const std::string& module) {
  if (const auto missing = WhyModuleMissing({module, DeviceModule(kCudaType)})) return Reason{*missing, toolchain};
  const auto answer = [] {
    std::string architecture, gpu;
    const std::string device = DeviceModule(kCudaType);
    reinterpret_cast<DescribeDeviceFn*>(FindModuleSymbol(device, "collage_gpu_architecture"))(architecture);
    reinterpret_cast<DescribeDeviceFn*>(FindModuleSymbol(device, "collage_describe_device"))(gpu);
    return architecture + "\n" + gpu;
  };
  const Result<std::string> text = AnswerInChild(answer, std::chrono::seconds(60));
  if (!text.ok()) return text.reason();
  const size_t end = text->find('\n');
  return ThisGpu{text->substr(0, end), text->substr(end + 1)};
}

}  // namespace collage::cuda_driver
