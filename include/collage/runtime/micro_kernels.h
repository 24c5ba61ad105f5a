// micro_kernels.h: functions of libraries that generated loops call for tiles (`MicroKernel` in
// collage/target/micro_kernels.h): how sizes are asked for, and how an address is found when a kernel is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collage/runtime/data_type.h"

namespace collage {

/// C[m, n] = A[m, k] B[k, n], or added to what C holds. Rows lie `lda`, `ldb`, `ldc` elements apart, the elements of a
/// row follow each other; of a transposed A it is its columns that lie so.
struct TileProduct {
  DataType dtype = kFloat32;
  int64_t m = 1, n = 1, k = 1;
  int64_t lda = 1, ldb = 1, ldc = 1;
  bool adds = false;
  bool transposes_a = false;

  bool operator==(const TileProduct&) const = default;

  /// "product float32 m=64 n=32 k=768 lda=768 ldb=32 ldc=32 beta=0 ta=0".
  std::string ToString() const;
  /// Reads what ToString writes. Throws kCorrupt.
  static TileProduct Parse(std::string_view text);
};

/// Signature of `collage_find_micro_kernel`, a C symbol of the module `libcollage_rt_NAME.so` of a toolchain whose
/// library has such functions: the address of the one for `request`; null when the library has none on this processor.
/// Called from several threads; the address holds for good.
using FindMicroKernelFn = void*(const char* request);

/// The function of toolchain `library` for `request`, null as above. Throws kUnavailable when the module is not here.
void* FindMicroKernel(const std::string& library, const std::string& request);

}  // namespace collage
