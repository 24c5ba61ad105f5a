// micro_kernels.cc: products of matrices by a BLAS library for the loops of native kernels.
#include "collage/runtime/micro_kernels.h"

#include <limits>

#include "backends/blas/kernels/library.h"
#include "backends/blas/libraries.h"
#include "collage/support/error.h"

namespace collage::blas_toolchain {
namespace {

/// Libraries count in 32 bits.
bool Fits(const TileProduct& tile) {
  for (const int64_t size : {tile.m, tile.n, tile.k, tile.lda, tile.ldb, tile.ldc}) {
    if (size < 1 || size > std::numeric_limits<int>::max()) return false;
  }
  return true;
}

/// The first that is here and can be opened: which one is fastest at a tile is not asked, so that all that call for
/// tiles in an executable call the same.
const OpenedLibrary& FirstLibrary() {
  std::string why = "no BLAS library is here";
  for (const Library& library : FindLibraries()) {
    try {
      return OpenLibrary(library.name);
    } catch (const Error& error) {
      why = error.message();
    }
  }
  throw Error(ErrorCategory::kUnavailable, why);
}

/// The function has the same address for all sizes, which are among its arguments.
void* Find(const TileProduct& tile) {
  if (!Fits(tile) || tile.transposes_a) return nullptr;
  if (tile.dtype == kFloat32) return reinterpret_cast<void*>(FirstLibrary().single.gemm);
  if (tile.dtype == kFloat64) return reinterpret_cast<void*>(FirstLibrary().precise.gemm);
  return nullptr;
}

}  // namespace
}  // namespace collage::blas_toolchain

extern "C" void* collage_find_micro_kernel(const char* request) {
  return collage::blas_toolchain::Find(collage::TileProduct::Parse(request));
}
