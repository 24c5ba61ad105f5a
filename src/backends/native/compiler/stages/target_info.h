// target_info.h: the machine that kernels are compiled for, as far as their loops depend on it.
#pragma once

#include <cstdint>

namespace collage::native {

/// Threads of a GPU that run together: to loops, a warp is a processor, and each thread a lane of its vectors.
inline constexpr int kWarpLanes = 32;

/// Features of the target machine that generated code may use.
struct TargetInfo {
  int vector_lanes = 16;               ///< float32 lanes of the widest vector worth using: 32 (a GPU), 16, 8 or 4
  bool has_whole_units = true;         ///< whether a vector of that width is computed at once, not in two steps
  bool has_bfloat16_products = false;  ///< VDPBF16PS on vectors of that width
  bool has_int16_products = false;     ///< VPMADDWD: pairs of int16
  bool has_byte_products = false;      ///< VPDPBUSD and VPDPWSSD: four bytes, pairs of int16, added to a sum
  bool has_byte_pairs = false;         ///< VPMADDUBSW: the sum of two products of bytes in 16 bits
  bool has_tensor_cores = false;       ///< a GPU's: matrices are multiplied by all threads of a warp
  bool has_warpgroups = false;         ///< its instructions for four warps together (sm_90a)
  bool prefers_warpgroups = false;     ///< whether these are used where a schedule does not ask for them
  int64_t block_shared_bytes = 0;      ///< memory that threads of one of its blocks can share
  int64_t processors = 1;              ///< a GPU's: as many blocks, at least, are computed at a time
  int64_t chunk = 4096;                ///< elements of a long row that are one unit of work
  double thread_flops = 100e3;         ///< work that is worth a second thread has more
  bool is_this_kind = true;            ///< whether this machine can run it
};

}  // namespace collage::native
