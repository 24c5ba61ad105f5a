// library_functions.h: calls of a vendor's C library in the loops that a hook RelayToTIR writes (RFC 10's call_extern).
//
// The executable holds nothing of the library: it names file and symbol, and loading it opens the library, in the
// folders of $COLLAGE_LIBRARY_PATH, then where the system looks. docs/register-a-target-kind.md shows such a hook.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace collage {

/// A C function.
struct LibraryFunction {
  /// The library's file, without its folder: "libvendor.so.1".
  std::string library;
  std::string symbol;
  /// Its type as MLIR writes it: "(!llvm.ptr, i32) -> i32"; "() -> ()" takes and returns nothing. There are !llvm.ptr
  /// (any pointer, size_t is i64 where pointers have 64 bits), i32, i64, f32 and f64; a structure goes by its address.
  std::string signature;
  /// How to get the library, for users that lack it or the symbol. One line.
  std::string hint;
};

/// Returns MLIR text that defines a function `@SYMBOL` for each of `functions`, which calls it: loops behind it say
/// `func.call @SYMBOL(…) : SIGNATURE`. A module has this text at most once. Throws kInput for a name or signature that
/// is none, and for two functions with one symbol.
std::string DeclareFunctions(std::span<const LibraryFunction> functions);

/// For `Toolchain::Probe`: why a kernel that calls these could not be loaded here; nothing when it could. The libraries
/// are opened in a child process, so that this one holds none of them.
std::optional<std::string> WhyFunctionsMissing(std::span<const LibraryFunction> functions);

}  // namespace collage
