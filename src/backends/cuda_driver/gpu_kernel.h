// gpu_kernel.h: a partition as code for NVIDIA GPUs and the launches that compute it: what a compiler passes on to the
// loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace collage::cuda_driver {

/// Threads of a block whose warps compute units of their own, in warps of 32.
inline constexpr int kWarpsPerBlock = 4;
/// The most warps of any block.
inline constexpr int kMostWarpsPerBlock = 32;

/// The most addresses that a kernel gets: parameters have 4 KiB.
inline constexpr int kMostAddresses = 500;

/// A kernel of an image.
struct GpuFunction {
  std::string name;            ///< its symbol
  int64_t shared_bytes = 0;    ///< the memory that threads of a block share
  int warps = kWarpsPerBlock;  ///< in a block
  bool is_for_blocks = false;  ///< whether the warps of a block compute each unit together

  bool operator==(const GpuFunction&) const = default;
};

/// The most bytes that threads of a block share on any GPU.
inline constexpr int64_t kMostSharedBytes = int64_t{227} << 10;

/// Runs kernel `function` of the image for units 0 to `count` - 1, `grain` of them at a time in one warp or block.
/// Before, if `counter_slot` is not -1, writes the int64 `counter` into that buffer.
struct Launch {
  int function = 0;   ///< a number into GpuKernel::functions
  int64_t count = 0;  ///< at least 1
  int64_t grain = 1;
  int counter_slot = -1;  ///< a place in the kernel's array of addresses
  int64_t counter_offset = 0;
  int64_t counter = 0;

  bool operator==(const Launch&) const = default;
};

/// The kind of an image that is text for this and later GPUs, with a 0 behind it.
inline constexpr const char* kPtx = "ptx";

/// Code of one form, all functions of it.
struct GpuImage {
  std::string
      kind;  ///< "sm_90": machine code for such GPUs; "ptx": text for these and later ones; "emulated": an ELF object
  std::vector<std::byte> bytes;

  bool operator==(const GpuImage&) const = default;
};

/// Functions get an array of addresses by value (inputs, constants, outputs, and, if there is any, workspace and memory
/// of warps), and then `count` and `grain`, both int64.
struct GpuKernel {
  std::string architecture;  ///< "sm_80,sm_90" or "emulated": it was made for such GPUs
  std::vector<GpuFunction> functions;
  std::vector<Launch> launches;  ///< in order
  std::vector<GpuImage> images;  ///< the best first
  int num_addresses = 0;         ///< length of the array
  bool has_workspace = false;    ///< whether one of them is the workspace's
  int64_t scratch_offset = 0;    ///< bytes from the workspace's address to memory of warps
  int64_t scratch_warps = 0;     ///< the most warps that a launch may have; 0: any number, there is no such memory
  int64_t scratch_bytes = 0;     ///< memory of each warp

  bool operator==(const GpuKernel&) const = default;
};

std::vector<std::byte> ToBlob(const GpuKernel& kernel);
/// Throws kCorrupt for what ToBlob did not make.
GpuKernel GpuKernelFrom(std::span<const std::byte> blob);

}  // namespace collage::cuda_driver
