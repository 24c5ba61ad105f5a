// targets.h: the machines that LLVM makes code for.
#pragma once

namespace collage::native {

/// Registers, once, the processors and GPUs that kernels are made for, as far as LLVM was linked with their code.
void InitialiseTargets();

}  // namespace collage::native
