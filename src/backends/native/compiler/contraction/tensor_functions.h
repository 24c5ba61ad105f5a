// tensor_functions.h: what all threads of a warp or of a block do together with matrices and with memory that they
// share, as functions that loops call with vectors of kWarpLanes elements. `gpu/tensor_cores` makes instructions of
// them.
#pragma once

namespace collage::native {

/// i64(i64 warps, i64 bytes): the function that calls it computes each of its units by a block of `warps` warps, all
/// of which call the same functions for blocks. Returns the number of the warp in its block. `bytes`, a constant as
/// `warps` is, is the memory that the block shares.
inline constexpr const char* kWarpOfBlock = "collage_warp_of_block";

/// Functions that add the product of a block of 16 rows with one of 8 columns, of 8 words each, to a block of sums:
/// four vectors of sums, four of words of the rows, two of words of the columns, all int32 or, for sums of floats,
/// float32. They return the sums. A word of a factor is ...
inline constexpr const char* kMultiplyTf32 = "collage_multiply_tf32";      ///< float32, without its last 13 bits
inline constexpr const char* kMultiplyBFloat16 = "collage_multiply_bf16";  ///< a pair of bfloat16
inline constexpr const char* kMultiplyFloat16 = "collage_multiply_f16";    ///< a pair of float16
/// Four bytes: those of rows without sign, those of columns with one.
inline constexpr const char* kMultiplyBytes = "collage_multiply_bytes";

/// Functions of four warps, the names of which end with a number of columns, a multiple of 8: they add the products of
/// 64 rows, 16 of each warp, with so many columns. Vectors of sums, four for each 8 columns; four of words of the rows
/// for each 8 words of a row; i64: bytes from the beginning of shared memory to the columns, which lie one behind the
/// other in pieces of 16 bytes whose order block_tile.h says, at a multiple of 8 columns. They return the sums.
inline constexpr const char* kGroupTf32 = "collage_group_tf32_";
inline constexpr const char* kGroupBFloat16 = "collage_group_bf16_";
inline constexpr const char* kGroupFloat16 = "collage_group_f16_";
inline constexpr const char* kGroupBytes = "collage_group_bytes_";
/// void(): copies that a thread has awaited are there for functions of four warps, too, behind a barrier.
inline constexpr const char* kFenceCopies = "collage_fence_copies";

// Memory that threads share is the block's where units are computed by blocks, else the warp's. Functions are given a
// place for each thread, a vector of int32, and an i64, the same for all: bytes from the beginning, and behind that.

/// void(places, i64, vector, vector): each thread writes two neighbouring numbers, at a multiple of 8 bytes.
inline constexpr const char* kWriteFloats = "collage_write_floats";
inline constexpr const char* kWriteIntegers = "collage_write_integers";
/// vector(places, i64): each thread reads one number.
inline constexpr const char* kReadFloats = "collage_read_floats";
inline constexpr const char* kReadIntegers = "collage_read_integers";
/// Four vectors of i32 (places, i64): four blocks of 8 rows of 16 bytes; thread 8 i + r knows the place of row r of
/// block i. Thread 4 r + w gets word w of row r of each.
inline constexpr const char* kLoadMatrices = "collage_load_matrices";

/// void(): what a warp's, or a block's, threads did to shared memory before is done for all of them.
inline constexpr const char* kSynchronise = "collage_synchronise";
inline constexpr const char* kSynchroniseBlock = "collage_synchronise_block";

/// void(places, i64, pointers, vector of i32 bytes): copies 16, or 4, bytes to shared memory while threads compute, of
/// which the first `bytes` are read and the others are zeros. Addresses are multiples of 16, or 4.
inline constexpr const char* kCopyQuad = "collage_copy_quad";
inline constexpr const char* kCopyWord = "collage_copy_word";
/// void(): ends a group of copies.
inline constexpr const char* kEndCopies = "collage_end_copies";
/// void(i64 late): all groups but the last `late` ones, a constant, are there for their thread.
inline constexpr const char* kAwaitCopies = "collage_await_copies";

/// Words from row to row of sums in shared memory are a multiple of 32 and so many: threads that write two words each,
/// in 8 rows, use all banks.
inline constexpr int kSumsPitch = 8;
/// Bytes of a warp's tile of 16 rows of 32 sums, where it shares no other memory.
inline constexpr int kTileBytes = 16 * (32 + kSumsPitch) * 4;

}  // namespace collage::native
