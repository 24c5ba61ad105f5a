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

/// Products of mma.sync: 16 rows times 8 columns.
enum class EmulatedProduct : uint8_t {
  kTf32,      ///< m16n8k8
  kBFloat16,  ///< m16n8k16, sums of float32
  kFloat16,   ///< m16n8k16, sums of float32
  kBytes,     ///< m16n8k32.u8.s8
};

/// Places in the table.
enum class Emulated : uint8_t {
  kThread,            ///< uint32_t(): %tid.x
  kBlock,             ///< uint32_t(): %ctaid.x
  kBlockSize,         ///< uint32_t(): %ntid.x
  kGridSize,          ///< uint32_t(): %nctaid.x
  kShuffle,           ///< uint32_t(uint32_t word, uint32_t lane): shfl.sync.idx of a whole warp
  kShuffleXor,        ///< uint32_t(uint32_t word, uint32_t mask): shfl.sync.bfly of a whole warp
  kSynchronise,       ///< void(): bar.warp.sync of a whole warp
  kSynchroniseBlock,  ///< void(): bar.sync of a whole block
  kShared,            ///< void*(): all memory that threads of the block share
  /// void(void* shared, const void* memory, uint32_t bytes, uint32_t size): cp.async of `size` bytes, zeros behind
  /// `bytes`
  kCopy,
  kEndCopies,    ///< void(): cp.async.commit_group
  kAwaitCopies,  ///< void(uint32_t late): cp.async.wait_group
  /// void(uint32_t product, uint32_t* words): mma.sync of a whole warp, with a thread's 4 words of rows, 2 of columns
  /// and 4 sums, which the results replace.
  kMultiply,
  /// void(const void* row, uint32_t* words): ldmatrix.x4 of a whole warp: 16 bytes of shared memory from each thread,
  /// four words to each.
  kLoadMatrices,
  /// void(uint32_t product, uint32_t columns, uint32_t depth, uint32_t* words, const void* columns): wgmma of four
  /// warps, 64 rows times `columns` columns of `depth` words: words has a thread's sums, which the results replace, and
  /// behind them its words of rows. Columns lie in shared memory, swizzled by as many bytes as they have.
  kMultiplyGroup,
  kProxyFence,  ///< void(): fence.proxy.async
  kAddress,  ///< void*(void* address, uint64_t bytes, uint32_t alignment, uint32_t is_store): where it can be accessed
  kNumFunctions
};

}  // namespace collage::cuda_driver
