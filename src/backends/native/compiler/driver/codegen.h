// codegen.h: MLIR text → machine code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/native/description/options.h"

namespace collage::native {

/// What generated code may use of the machine it is compiled for.
struct TargetInfo {
  int vector_lanes = 16;               ///< float32 lanes of the widest vector worth using: 16, 8 or 4
  bool has_whole_units = true;         ///< whether a vector of that width is computed at once, not in two steps
  bool has_bfloat16_products = false;  ///< VDPBF16PS on vectors of that width
  bool has_int16_products = false;     ///< VPMADDWD: pairs of int16
  bool has_byte_products = false;      ///< VPDPBUSD and VPDPWSSD: four bytes, pairs of int16, added to a sum
  bool is_this_kind = true;            ///< whether this machine can run it
};

/// The processor that `options` say; without, the one that $COLLAGE_CPU names ("x86-64-v3"), else this machine's.
/// Throws kInput for processors, instruction sets and triples that LLVM does not know.
TargetInfo TargetOf(const NativeOptions& options);

/// Compiles a module in the dialects func, scf, cf, arith, math, vector and llvm for that processor into a shared
/// object that exports the module's public functions and, as native_loader.h wants it, which instruction sets they may
/// use. Throws as TargetOf, and Error with MLIR's or LLVM's diagnostics.
std::vector<std::byte> CompileMlir(const std::string& text, const NativeOptions& options);

/// The steps of CompileMlir, as texts.
struct CodeListing {
  std::string llvm_ir;  ///< after LLVM's passes
  std::string assembly;
};

/// Compiles `text` as CompileMlir does, without linking. Throws as that.
CodeListing ListCode(const std::string& text, const NativeOptions& options);

}  // namespace collage::native
