// architectures.cc: properties of GPUs (cuda_driver/gpus.h) as the library reads them.
#include "backends/cudnn/architectures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "backends/cuda_driver/gpus.h"
#include "collage/support/error.h"

namespace collage::cudnn {
namespace {

using cuda_driver::Gpu;
using cuda_driver::kGpus;
using cuda_driver::kKiB;

constexpr int64_t kVendor = 0x10DE;

}  // namespace

std::vector<std::string> KnownArchitectures() {
  std::vector<std::string> names;
  for (const Gpu& gpu : kGpus) names.emplace_back(gpu.architecture);
  return names;
}

std::string DeviceProperties(const std::string& architecture) {
  const auto* gpu = std::ranges::find(kGpus, architecture, &Gpu::architecture);
  if (gpu == std::end(kGpus)) {
    throw Error(ErrorCategory::kInput, fmt::format("option 'arch' of 'cudnn' is one of {}, got '{}'",
                                                   fmt::join(KnownArchitectures(), ", "), architecture));
  }
  return fmt::format(
      R"({{"deviceName": "{}", "deviceVer": {}, "multiProcessorCount": {}, "maxSharedMemoryPerBlock": {}, )"
      R"("maxSharedMemoryPerBlockOptin": {}, "reservedSharedMemoryPerBlock": 1024, "maxThreadsPerSM": {}, )"
      R"("maxCtasPerSM": {}, "maxThreadsPerBlock": 1024, "warpSize": 32, "regsPerBlock": 65536, )"
      R"("maxRegistersPerSM": 65536, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], )"
      R"("l2CacheSize": {}, "totalGlobalMem": {}, "smClockRateKHz": {}, "memClockRateKHz": {}, "pciDeviceId": {}, )"
      R"("isTccDriver": 0, "supportCoopLaunch": 1, "cudaDeviceId": 0, "driverVer": 13000}})",
      gpu->name, gpu->version, gpu->multiprocessors, 48 * kKiB, gpu->shared_bytes, gpu->threads, gpu->blocks,
      gpu->cache_bytes, gpu->memory_bytes, gpu->clock_khz, gpu->memory_khz, gpu->pci_device << 16 | kVendor);
}

}  // namespace collage::cudnn
