// codegen.h: MLIR text → machine code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/native/compiler/stages/target_info.h"
#include "backends/native/description/options.h"

namespace collage::native {

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
