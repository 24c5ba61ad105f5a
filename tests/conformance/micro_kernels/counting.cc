// counting.cc: a library of one micro-kernel, products of float32, written out, which counts its calls: what native
// kernels do with a library is seen where none is installed.
#include <atomic>

#include "collage/runtime/micro_kernels.h"

namespace {

std::atomic<int64_t> num_calls{0};

void Multiply(int32_t m, int64_t n, int32_t k, float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
              float beta, float* c, int64_t ldc) {
  ++num_calls;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += a[i * lda + p] * b[p * ldb + j];
      c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
    }
  }
}

}  // namespace

extern "C" void* collage_find_micro_kernel(const char* request) {
  constexpr int64_t kMostDepth = 500;
  const collage::TileProduct tile = collage::TileProduct::Parse(request);
  const bool is_taken = tile.dtype == collage::kFloat32 && tile.k <= kMostDepth && !tile.transposes_a;
  return is_taken ? reinterpret_cast<void*>(&Multiply) : nullptr;
}

extern "C" int64_t collage_num_calls() { return num_calls; }
