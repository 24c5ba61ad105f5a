// codegen.h: MLIR text → machine code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace collage::native {

/// What generated code may use of the machine it is compiled for.
struct TargetInfo {
  int vector_lanes = 16;               ///< float32 lanes of the widest vector worth using: 16, 8 or 4
  bool has_bfloat16_products = false;  ///< VDPBF16PS on vectors of that width
};

/// The processor of this machine, or the one that $COLLAGE_CPU names ("x86-64-v3").
TargetInfo ThisTarget();

/// Compiles a module in the dialects func, scf, cf, arith, math, vector and llvm for this machine into a shared object
/// that exports the module's public functions. Throws Error with MLIR's or LLVM's diagnostics.
std::vector<std::byte> CompileMlir(const std::string& text);

}  // namespace collage::native
