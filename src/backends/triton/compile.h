// compile.h: the Triton of a Python, and what it makes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/triton/instance.h"
#include "backends/triton/schedules.h"
#include "collage/target/toolchain.h"

namespace collage::triton {

/// A Python that has Triton.
struct Compiler {
  std::string python;
  std::string version;  ///< "Triton 3.9.0"
};

/// Looks for it. `available`, or what is missing and how to get it; `version` is that of `compiler`.
Availability FindCompiler(Compiler& compiler);

struct Compiled {
  std::vector<cuda_driver::GpuImage> images;  ///< the best first
  int64_t warps = 4;                          ///< in a block
  int64_t shared_bytes = 0;                   ///< threads of a block share
  int64_t num_parameters = 0;
  std::string notes;  ///< the assembler's words on registers
};

/// Code of `instance` for GPUs of `architecture`, which may be "emulated", made now or before: kept in the cache of
/// kernels. Throws kUnsupported where Triton refuses it, kUnavailable where it cannot run.
Compiled Compile(const Compiler& compiler, const Instance& instance, const Schedule& schedule,
                 const std::string& architecture);

}  // namespace collage::triton
