// generate.h: code that libxsmm generates for a product. The library counts columns first: a row-major product A x B is
// its product of B's and A's transposes, which is how they lie in memory.
#pragma once

#include <libxsmm.h>

#include "collage/runtime/micro_kernels.h"

namespace collage::xsmm_toolchain {

template <typename T>
struct Function;
template <>
struct Function<float> {
  using Type = libxsmm_smmfunction;
};
template <>
struct Function<double> {
  using Type = libxsmm_dmmfunction;
};

/// The code for `tile`, of elements T, called with B, A, C; null when the library generates none. The library must be
/// initialised.
template <typename T>
typename Function<T>::Type Generate(const TileProduct& tile) {
  const auto count = [](int64_t value) { return static_cast<libxsmm_blasint>(value); };
  const libxsmm_blasint lda = count(tile.lda), ldb = count(tile.ldb), ldc = count(tile.ldc);
  const T alpha = 1, beta = tile.adds ? 1 : 0;
  // The library's second operand is A as it lies; stored as [k, m] it is that operand's transpose.
  const int flags = tile.transposes_a ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
  if constexpr (sizeof(T) == sizeof(float)) {
    return libxsmm_smmdispatch(count(tile.n), count(tile.m), count(tile.k), &ldb, &lda, &ldc, &alpha, &beta, &flags,
                               &prefetch);
  } else {
    return libxsmm_dmmdispatch(count(tile.n), count(tile.m), count(tile.k), &ldb, &lda, &ldc, &alpha, &beta, &flags,
                               &prefetch);
  }
}

}  // namespace collage::xsmm_toolchain
