// tensor_functions.h: what all threads of a warp do together with matrices and with memory that they share, as
// functions that loops call with vectors of kWarpLanes elements. `gpu/tensor_cores` makes instructions of them.
#pragma once

namespace collage::native {

/// Functions that add the product of a block of 16 rows with one of 8 columns, of 8 words each, to a block of sums:
/// four vectors of sums, four of words of the rows, two of words of the columns, all int32 or, for sums of floats,
/// float32. They return the sums. A word of a factor is ...
inline constexpr const char* kMultiplyTf32 = "collage_multiply_tf32";      ///< float32, without its last 13 bits
inline constexpr const char* kMultiplyBFloat16 = "collage_multiply_bf16";  ///< a pair of bfloat16
inline constexpr const char* kMultiplyFloat16 = "collage_multiply_f16";    ///< a pair of float16
/// Four bytes: those of rows without sign, those of columns with one.
inline constexpr const char* kMultiplyBytes = "collage_multiply_bytes";

/// Functions that write four blocks of sums side by side into the warp's tile, which threads share, and that read its
/// 16 rows of 32 columns. Between the two, and before the next tile is written, threads have to be synchronised.
inline constexpr const char* kWriteFloats = "collage_write_floats";
inline constexpr const char* kWriteIntegers = "collage_write_integers";
inline constexpr const char* kReadFloats = "collage_read_floats";
inline constexpr const char* kReadIntegers = "collage_read_integers";

/// void(): what a warp's threads did to shared memory before is done for all of them.
inline constexpr const char* kSynchronise = "collage_synchronise";

/// Each thread has places of 16 bytes in shared memory, which copies fill while it computes. Copies come in groups.
/// void(i64 place, pointers, vector of i32 bytes, i64 places): copies up to 16 bytes, zeros behind them, from addresses
/// that are multiples of 16. `places`, a constant, is the number of all places.
inline constexpr const char* kCopyAhead = "collage_copy_ahead";
/// void(): ends a group.
inline constexpr const char* kEndCopies = "collage_end_copies";
/// void(i64 late): all groups but the last `late` ones, a constant, are there for their thread.
inline constexpr const char* kAwaitCopies = "collage_await_copies";
/// The four words of a place: four vectors of i32 (i64 place).
inline constexpr const char* kCopied = "collage_copied";

/// Bytes of a warp's tile. Places lie behind it.
inline constexpr int kTileBytes = 16 * 40 * 4;
/// Bytes of a place of all threads of a warp.
inline constexpr int kPlaceBytes = 32 * 16;

}  // namespace collage::native
