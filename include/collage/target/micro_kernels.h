// micro_kernels.h: functions of toolchains' libraries that the loops of native kernels may call for a tile (RFC 0.81,
// Appendix B): one row for each.
#pragma once

#include <string>
#include <vector>

#include "collage/runtime/data_type.h"

namespace collage {

/// A function for a tile of a contraction: what is computed from the tile in the same kernel finds it in the nearest
/// cache. A target names the toolchain: "llvm -libs=NAME". The module `libcollage_rt_NAME.so` exports
/// `collage_find_micro_kernel`, which makes the function for given sizes when a kernel is loaded
/// (collage/runtime/micro_kernels.h); executables hold none of it.
struct MicroKernel {
  /// The contraction that it computes. There is "product": C[m, n] = A[m, k] B[k, n], or added to C.
  std::string contraction;
  std::vector<DataType> dtypes;  ///< types of A, B and C
  /// Its arguments as words: a, b, c for addresses; TYPE:WHAT for numbers, where TYPE is i32, i64 or `element`, and
  /// WHAT is m, n, k, lda, ldb, ldc, beta (1 where C is added to, else 0) or a number: "i32:m i32:n a i32:lda".
  std::string arguments;
  bool takes_transposed = false;  ///< whether A may be stored as [k, m]
  std::string hint;               ///< how to get the library, shown if an executable runs without it
};

/// Base class of a `Toolchain` whose library has such functions.
class HasMicroKernels {
 public:
  virtual ~HasMicroKernels() = default;
  virtual std::vector<MicroKernel> MicroKernels() const = 0;
};

}  // namespace collage
