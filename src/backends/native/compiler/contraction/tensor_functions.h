// tensor_functions.h: what all threads of a warp do together with matrices, as functions that loops call with vectors
// of kWarpLanes elements. `gpu/tensor_cores` makes instructions of them.
#pragma once

#include <array>

namespace collage::native {

/// Functions that add the product of a block of 16 rows with one of 8 columns, of 8 words each, to a block of sums:
/// four vectors of sums, four of words of the rows, two of words of the columns, all int32 or, for sums of floats,
/// float32. They return the sums. A word of a factor is ...
inline constexpr const char* kMultiplyTf32 = "collage_multiply_tf32";      ///< float32, without its last 13 bits
inline constexpr const char* kMultiplyBFloat16 = "collage_multiply_bf16";  ///< a pair of bfloat16
inline constexpr const char* kMultiplyFloat16 = "collage_multiply_f16";    ///< a pair of float16
/// Four bytes: those of rows without sign, those of columns with one.
inline constexpr const char* kMultiplyBytes = "collage_multiply_bytes";

/// Functions that make 16 rows of 32 columns of four blocks of sums side by side, of float32 or int32.
inline constexpr const char* kTurnFloats = "collage_turn_floats";
inline constexpr const char* kTurnIntegers = "collage_turn_integers";

}  // namespace collage::native
