// native_loader.h: kernels that are machine code: an ELF shared object, opened from memory.
//
// The object exports `void collage_kernel(void* const* buffers)`, with the addresses of inputs, constants, outputs and,
// if asked for, workspace in `buffers`, in this order. It may call `collage_parallel_for` of this library, and, where a
// run knows how much workspace it needs, `void* collage_scratch(int64_t bytes)`: memory of the calling thread, which
// stays as it is until the thread calls again, aligned to 64 bytes. It may also
// export `const char collage_kernel_needs[]`, the instruction sets that it may use (support/machine.h) with blanks in
// between: on a processor that lacks one it is refused before any of its code runs, as it is on another kind of
// machine.
//
// Code that calls libraries exports `const char collage_kernel_calls[]`, a line for each function, "LIBRARY|REQUEST|HOW
// TO GET IT" or "file:LIBRARY|SYMBOL|HOW TO GET IT" (library_calls.h), and `void* collage_kernel_addresses[]`, as many,
// which are filled before any of the code runs. The object holds nothing of a library: where it is missing, the error
// says how to get it.
//
// Code whose results may lie where parameters do (InPlaceResult) exports `const char collage_kernel_in_place[]`, the
// numbers of a parameter and a result for each, with spaces between them.
#pragma once

#include <memory>

#include "collage/runtime/kernel.h"

namespace collage {

inline constexpr const char* kObjectLoaderName = "object";
inline constexpr const char* kObjectNeeds = "collage_kernel_needs";
inline constexpr const char* kObjectCalls = "collage_kernel_calls";
inline constexpr const char* kObjectAddresses = "collage_kernel_addresses";
inline constexpr const char* kObjectInPlace = "collage_kernel_in_place";

std::unique_ptr<KernelLoader> MakeObjectLoader();

}  // namespace collage
