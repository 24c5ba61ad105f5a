// compile.h: nvcc and CUTLASS's headers, and what they make.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/cutlass/instance.h"
#include "collage/target/toolchain.h"

namespace collage::cutlass {

/// nvcc and the headers of this machine.
struct Compiler {
  std::filesystem::path nvcc;
  std::filesystem::path headers;
  std::string version;  ///< "CUTLASS 4.2.0, CUDA 13.0.88"
};

/// Looks for both. `available`, or what is missing and how to get it; `version` is that of `compiler`.
Availability FindCompiler(Compiler& compiler);

/// Machine code of `instance` for GPUs of `architecture`, and what ptxas says of registers, made now or before: kept in
/// the cache of kernels. Throws kUnsupported where nvcc refuses it, kUnavailable where it cannot run.
struct Compiled {
  std::vector<std::byte> code;
  std::string notes;
};
Compiled Compile(const Compiler& compiler, const Instance& instance, const std::string& architecture);

}  // namespace collage::cutlass
