// launches.h: what a kernel's entry point calls, as a list.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda_driver/gpu_kernel.h"

namespace mlir {
class ModuleOp;
}

namespace collage::native {

/// The calls of a kernel, whose functions are numbered in the order of their first call.
struct KernelCalls {
  std::vector<std::string> functions;
  std::vector<cuda_driver::Launch> launches;
};

/// Reads the entry point of a module in the dialects func, scf, arith and llvm as Emitter::Module writes it, and erases
/// it. Throws kUnsupported for what depends on numbers that only a run knows.
KernelCalls TakeCalls(mlir::ModuleOp module);

}  // namespace collage::native
