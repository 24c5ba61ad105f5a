// warps.h: loops over vectors become code that the threads of a warp run together.
#pragma once

#include <cstdint>

namespace llvm {
class Function;
}

namespace collage::native {

/// Memory of a warp.
struct WarpMemory {
  int64_t scratch_bytes = 0;
  int64_t block_warps = 0;   ///< warps of a block that computes units together; 0: warps compute units of their own
  int64_t shared_bytes = 0;  ///< memory that threads of such a block share, or of a warp, a part of its block's
};

/// Rewrites `function`, which computes with vectors of kWarpLanes elements and with single values, for a warp of a GPU,
/// or the warps of a block, that enter it together: each thread holds the element of its own lane of every vector, and
/// all single values. Memory that some threads of a warp write and others read is synchronised between. Calls of
/// collage_scratch(bytes) become memory of the warp, for which `scratch_slot` of the kernel's array of addresses has
/// room. Returns what it needs. Throws kUnsupported for what no warp can do.
WarpMemory SpreadOverWarp(llvm::Function& function, int scratch_slot);

}  // namespace collage::native
