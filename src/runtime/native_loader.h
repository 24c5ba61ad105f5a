// native_loader.h: kernels that are machine code: an ELF shared object, opened from memory.
//
// The object exports `void collage_kernel(void* const* buffers)`, with the addresses of inputs, constants, outputs and,
// if asked for, workspace in `buffers`, in this order. It may call `collage_parallel_for` of this library.
#pragma once

#include <memory>

#include "collage/runtime/kernel.h"

namespace collage {

inline constexpr const char* kObjectLoaderName = "object";

std::unique_ptr<KernelLoader> MakeObjectLoader();

}  // namespace collage
