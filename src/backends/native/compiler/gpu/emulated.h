// emulated.h: a GPU's code as code of this machine, for drivers that stand in for a GPU.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace collage::native {

/// Compiles `module`, optimised code for a GPU with kernels `functions`, into an object as
/// backends/cuda_driver/emulation.h describes it. Changes the module. Throws kUnsupported for instructions of the GPU
/// that nobody emulates.
std::vector<std::byte> CompileEmulated(llvm::Module& module, const std::vector<std::string>& functions);

}  // namespace collage::native
