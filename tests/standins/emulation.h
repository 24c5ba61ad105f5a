// emulation.h: runs code that was made for the architecture "emulated" (backends/cuda_driver/emulation.h): each thread
// of a GPU is a fibre, and those of a warp wait for each other where the instructions say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace standin {

struct Grid {
  uint32_t blocks = 1;
  uint32_t threads = 32;  ///< in a block, a multiple of 32
  uint32_t shared_bytes = 0;
  uint32_t rows = 1, layers = 1;  ///< blocks along y and z
};

/// Bytes of each parameter of a launch.
using Parameters = std::vector<std::vector<std::byte>>;

/// Finds `bytes` of the device's memory for the host; null where they are not within one allocation.
using FindMemory = std::function<std::byte*(uint64_t address, size_t bytes)>;

/// One kernel of an object.
struct EmulatedKernel {
  /// Computes a launch, and returns what was wrong.
  using Whole = std::function<std::string(const Grid&, const Parameters&, const FindMemory&)>;

  std::string name;
  void (*thread)(void* const* parameters) = nullptr;
  std::vector<uint64_t> parameter_sizes;
  uint32_t most_shared_bytes = 48 << 10;  ///< a launch may ask for so many
  Whole whole;                            ///< in place of `thread`, for launches that are computed as a whole
};

/// An object that is opened.
class EmulatedModule {
 public:
  /// Null unless `image` is such an object, an instance of CUTLASS (cutlass.h) or a kernel of Triton (triton/open.h).
  static std::unique_ptr<EmulatedModule> Open(const void* image);
  ~EmulatedModule();
  /// Null unless it has that kernel. The module owns it.
  const EmulatedKernel* Find(const std::string& name);

 private:
  EmulatedModule(void* handle, int file) : handle_(handle), file_(file) {}

  void* handle_;
  int file_;  ///< open meanwhile: the system knows objects by its number
  std::vector<std::unique_ptr<EmulatedKernel>> kernels_;
};

/// Runs all threads, one block after the other, and each warp of a block until it waits for the others. Returns the
/// first thing that was wrong, with block and thread: an access out of bounds or misaligned, threads of a warp or of a
/// block that do not meet, shared memory that is used before its copies are there, and, with $STANDIN_CUDA_RACES,
/// accesses to the same bytes that nothing orders. Empty where all was well. With $STANDIN_CUDA_REVERSED the last warp
/// of a block and the last thread of a warp run first.
std::string RunGrid(const EmulatedKernel& kernel, const Grid& grid, const Parameters& parameters,
                    const FindMemory& find);

}  // namespace standin
