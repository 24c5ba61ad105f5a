// micro_kernels.cc: libxsmm's generated code for the loops of native kernels.
#include <limits>

#include "backends/xsmm/kernels/generate.h"

namespace collage::xsmm_toolchain {
namespace {

/// The library counts in 32 bits.
bool Fits(const TileProduct& tile) {
  constexpr int64_t kMost = std::numeric_limits<libxsmm_blasint>::max();
  for (const int64_t size : {tile.m, tile.n, tile.k, tile.lda, tile.ldb, tile.ldc}) {
    if (size < 1 || size > kMost) return false;
  }
  return true;
}

void* Find(const TileProduct& tile) {
  if (!Fits(tile)) return nullptr;
  libxsmm_init();
  if (tile.dtype == kFloat32) return reinterpret_cast<void*>(Generate<float>(tile));
  if (tile.dtype == kFloat64) return reinterpret_cast<void*>(Generate<double>(tile));
  return nullptr;
}

}  // namespace
}  // namespace collage::xsmm_toolchain

extern "C" void* collage_find_micro_kernel(const char* request) {
  return collage::xsmm_toolchain::Find(collage::TileProduct::Parse(request));
}
