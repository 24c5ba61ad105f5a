// emulation.h: what code that is made for the architecture "emulated" calls: an ELF object of this machine that a
// driver without a GPU runs, each thread of a block on its own.
//
// The object exports, for each kernel NAME, `void NAME(void* const* parameters)`, which one thread of the GPU enters,
// and `const uint64_t NAME_sizes[]`, bytes of its parameters with a 0 behind the last one, and `void*
// collage_emulation[]`, which the driver fills with the functions below.
#pragma once

#include <cstdint>

namespace collage::cuda_driver {

inline constexpr const char* kEmulatedArchitecture = "emulated";
inline constexpr const char* kEmulationTable = "collage_emulation";
inline constexpr const char* kEmulationSizes = "_sizes";

/// Places in the table.
enum class Emulated : uint8_t {
  kThread,       ///< uint32_t(): %tid.x
  kBlock,        ///< uint32_t(): %ctaid.x
  kBlockSize,    ///< uint32_t(): %ntid.x
  kGridSize,     ///< uint32_t(): %nctaid.x
  kShuffle,      ///< uint32_t(uint32_t word, uint32_t lane): shfl.sync.idx of a whole warp
  kShuffleXor,   ///< uint32_t(uint32_t word, uint32_t mask): shfl.sync.bfly of a whole warp
  kSynchronise,  ///< void(): bar.warp.sync of a whole warp
  kAddress,  ///< void*(void* address, uint64_t bytes, uint32_t alignment, uint32_t is_store): where it can be accessed
  kNumFunctions
};

}  // namespace collage::cuda_driver
