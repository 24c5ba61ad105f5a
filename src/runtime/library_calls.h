// library_calls.h: functions of libraries that the code of a kernel calls. The code holds a line for each and nothing
// of the library; addresses are found when the kernel is loaded (native_loader.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage {

/// One function: of a toolchain's library, whose module finds or makes it for a request (micro_kernels.h), or a symbol
/// of a C library.
struct LibraryCall {
  enum class Kind { kRequest, kSymbol };
  Kind kind = Kind::kRequest;
  std::string library;   ///< kRequest: a toolchain; kSymbol: a file, "libvendor.so.1", without its folder
  std::string function;  ///< kRequest: the request; kSymbol: the symbol
  std::string hint;      ///< how to get the library

  bool operator==(const LibraryCall&) const = default;

  /// A line: "xsmm|product float32 m=64 …|apt-get install libxsmm-dev" or "file:libvendor.so.1|vendor_relu|…".
  std::string ToString() const;
  /// Reads what ToString writes. Throws kCorrupt.
  static LibraryCall Parse(std::string_view line);
};

/// The address of the function, which holds for good. Throws kUnavailable: names library, function, the reason and the
/// hint.
void* Resolve(const LibraryCall& call);

/// The functions that the code of a kernel, an ELF object of 64 bits, says it calls; none for anything else. Opens
/// nothing. Throws kCorrupt for a damaged line.
std::vector<LibraryCall> CallsOf(std::span<const std::byte> object);

}  // namespace collage
