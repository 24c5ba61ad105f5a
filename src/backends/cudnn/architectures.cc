// architectures.cc: one GPU of each architecture, by NVIDIA's data sheets and the tables of compute capabilities in its
// CUDA C++ Programming Guide.
#include "backends/cudnn/architectures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "backends/cuda_driver/emulation.h"
#include "collage/support/error.h"

namespace collage::cudnn {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
constexpr int64_t kGB = 1'000'000'000;
constexpr int64_t kVendor = 0x10DE;

struct Gpu {
  const char* architecture;
  const char* name;
  int version;  ///< compute capability times 100
  int multiprocessors;
  int64_t shared_bytes;  ///< most that a block may use
  int threads;           ///< a multiprocessor has, at most
  int blocks;            ///< a multiprocessor has, at most
  int64_t cache_bytes;
  int64_t memory_bytes;
  int clock_khz;
  int memory_khz;
  int64_t pci_device;
};

constexpr Gpu kGpus[] = {
    {"sm_80", "NVIDIA A100-SXM4-80GB", 800, 108, 163 * kKiB, 2048, 32, 40 * kMiB, 80 * kGB, 1410000, 1593000, 0x20B2},
    {"sm_86", "NVIDIA A10", 860, 72, 99 * kKiB, 1536, 16, 6 * kMiB, 24 * kGB, 1695000, 6251000, 0x2236},
    {"sm_89", "NVIDIA L40S", 890, 142, 99 * kKiB, 1536, 24, 96 * kMiB, 48 * kGB, 2520000, 9001000, 0x26B9},
    {"sm_90", "NVIDIA H100 80GB HBM3", 900, 132, 227 * kKiB, 2048, 32, 50 * kMiB, 80 * kGB, 1980000, 2619000, 0x2330},
    {"sm_100", "NVIDIA B200", 1000, 148, 227 * kKiB, 2048, 32, 126 * kMiB, 180 * kGB, 1965000, 3996000, 0x2901},
    {"sm_120", "NVIDIA GeForce RTX 5090", 1200, 170, 99 * kKiB, 1536, 24, 96 * kMiB, 32 * kGB, 2407000, 14001000,
     0x2B85},
    {cuda_driver::kEmulatedArchitecture, "stand-in for a GPU", 0, 1, 48 * kKiB, 1024, 16, kMiB, kGB, 1000, 1000, 0},
};

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
