// gpus.h: one GPU of each architecture, by NVIDIA's data sheets and the tables of compute capabilities in its CUDA C++
// Programming Guide.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "backends/cuda_driver/emulation.h"

namespace collage::cuda_driver {

inline constexpr int64_t kKiB = 1024;
inline constexpr int64_t kMiB = 1024 * kKiB;
inline constexpr int64_t kGB = 1'000'000'000;

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

inline constexpr Gpu kGpus[] = {
    {"sm_80", "NVIDIA A100-SXM4-80GB", 800, 108, 163 * kKiB, 2048, 32, 40 * kMiB, 80 * kGB, 1410000, 1593000, 0x20B2},
    {"sm_86", "NVIDIA A10", 860, 72, 99 * kKiB, 1536, 16, 6 * kMiB, 24 * kGB, 1695000, 6251000, 0x2236},
    {"sm_89", "NVIDIA L40S", 890, 142, 99 * kKiB, 1536, 24, 96 * kMiB, 48 * kGB, 2520000, 9001000, 0x26B9},
    {"sm_90", "NVIDIA H100 80GB HBM3", 900, 132, 227 * kKiB, 2048, 32, 50 * kMiB, 80 * kGB, 1980000, 2619000, 0x2330},
    {"sm_100", "NVIDIA B200", 1000, 148, 227 * kKiB, 2048, 32, 126 * kMiB, 180 * kGB, 1965000, 3996000, 0x2901},
    {"sm_120", "NVIDIA GeForce RTX 5090", 1200, 170, 99 * kKiB, 1536, 24, 96 * kMiB, 32 * kGB, 2407000, 14001000,
     0x2B85},
    {kEmulatedArchitecture, "stand-in for a GPU", 0, 1, 48 * kKiB, 1024, 16, kMiB, kGB, 1000, 1000, 0},
};

/// The GPU by whose properties tiles are chosen for `architecture`: the oldest one stands for those that are not known,
/// and for what is emulated.
inline const Gpu& GpuLike(std::string_view architecture) {
  for (const Gpu& gpu : kGpus) {
    if (gpu.version > 0 && architecture.starts_with(gpu.architecture)) return gpu;
  }
  return kGpus[0];
}

/// 90 of "sm_90"; nothing for "emulated", and for "sm_90a", which is for no other GPU.
inline std::optional<int> ArchitectureNumber(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  if (!architecture.starts_with(kPrefix)) return std::nullopt;
  architecture.remove_prefix(kPrefix.size());
  int number = 0;
  const char* end = architecture.data() + architecture.size();
  const auto [stopped, code] = std::from_chars(architecture.data(), end, number);
  return code == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

}  // namespace collage::cuda_driver
