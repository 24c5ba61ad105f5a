// loaded_module.cc: the first image that a GPU can run.
#include "backends/cuda_driver/loaded_module.h"

#include <fmt/format.h>

#include "collage/support/error.h"

namespace collage::cuda_driver {
namespace {

/// Whether the driver has no use for an image on this GPU, so that another one may do.
bool IsForOthers(Status status) {
  return status == kNoBinaryForGpu || status == kInvalidImage || status == kInvalidPtx || status == kPtxOfLaterVersion;
}

}  // namespace

LoadedModule::LoadedModule(const Driver& driver, std::span<const GpuImage> images, const std::string& architecture,
                           const char* toolchain)
    : driver_(driver) {
  std::string kinds;
  for (const GpuImage& image : images) {
    const Status status = driver.ModuleLoadData(&module_, image.bytes.data());
    if (status == 0) return;
    if (!IsForOthers(status)) driver.Check(status, "load code for the GPU");
    kinds += (kinds.empty() ? "" : ", ") + image.kind;
  }
  throw Error(
      ErrorCategory::kUnavailable,
      fmt::format("a kernel was made for {} ({}), which the GPU {} cannot run", architecture, kinds, DescribeGpu()),
      toolchain, "compile on this machine, or with -arch for its GPU");
}

Function LoadedModule::Find(const std::string& name, int64_t shared_bytes) const {
  Function function = nullptr;
  driver_.Check(driver_.ModuleGetFunction(&function, module_, name.c_str()), "find '" + name + "' in a GPU's code");
  ReserveShared(function, shared_bytes);
  return function;
}

void LoadedModule::ReserveShared(Function function, int64_t shared_bytes) const {
  if (shared_bytes <= kUsualSharedBytes) return;
  driver_.Check(driver_.FuncSetAttribute(function, kMostDynamicSharedBytes, static_cast<int>(shared_bytes)),
                "reserve memory that threads share");
}

}  // namespace collage::cuda_driver
