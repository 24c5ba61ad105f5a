// function_signature.h: the type of a C function, read from its MLIR text, and how a kernel names the function.
#pragma once

#include <string>
#include <vector>

#include "collage/target/library_functions.h"
#include "runtime/library_calls.h"

namespace collage {

/// Types as MLIR writes them.
struct FunctionSignature {
  std::vector<std::string> arguments;
  std::string result;  ///< empty: none

  /// "(!llvm.ptr, i32) -> ()".
  std::string ToString() const;
};

/// The signature of `function`. Throws kInput, with what is wanted, for text that is none.
FunctionSignature SignatureOf(const LibraryFunction& function);
/// The entry of a kernel's table of addresses for `function`, a symbol of a C library. Throws kInput for names that are
/// none.
LibraryCall SymbolCall(const LibraryFunction& function);

}  // namespace collage
