// pthreadpool.cc: as much of the pthreadpool library's interface as XNNPACK calls, on the process's one thread pool.
//
// It is loaded under the name libpthreadpool.so.0 before XNNPACK. Without it a second set of threads would wait for
// work on the processors that the pool uses, and each operator would pay for waking them. A grid of tiles is counted
// row-major and every thread of the pool gets a contiguous part of it. A null pool computes on the caller, as in the
// original.
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "collage/runtime/thread_pool.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

constexpr uint32_t kDisableDenormals = 1;

/// Makes denormals zero while it lives, as the flag asks.
class DenormalsAsZero {
 public:
  explicit DenormalsAsZero(bool wanted) {
#if defined(__x86_64__)
    constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;
    saved_ = _mm_getcsr();
    if (wanted) _mm_setcsr(saved_ | kFlushAndDenormalsAreZero);
#endif
  }
  ~DenormalsAsZero() {
#if defined(__x86_64__)
    _mm_setcsr(saved_);
#endif
  }
  DenormalsAsZero(const DenormalsAsZero&) = delete;
  DenormalsAsZero& operator=(const DenormalsAsZero&) = delete;

 private:
  unsigned saved_ = 0;
};

/// Runs `task(context, index 0 … index D-1, size of the last T tiles)` over `ranges`, the last T of which are tiled.
template <size_t D, size_t T, typename Task>
class Grid {
 public:
  Grid(Task task, void* context, std::array<size_t, D> ranges, std::array<size_t, T> tiles, uint32_t flags)
      : task_(task), context_(context), ranges_(ranges), disable_denormals_((flags & kDisableDenormals) != 0) {
    steps_.fill(1);
    for (size_t t = 0; t < T; ++t) steps_[D - T + t] = tiles[t];
    for (size_t d = 0; d < D; ++d) {
      counts_[d] = static_cast<int64_t>((ranges_[d] + steps_[d] - 1) / steps_[d]);
      total_ *= counts_[d];
    }
  }

  void Run(const void* pool) {
    if (total_ == 0) return;
    if (pool == nullptr) return Part(0, total_);
    collage::ParallelFor(
        total_, [](void* self, int64_t begin, int64_t end) { static_cast<Grid*>(self)->Part(begin, end); }, this);
  }

 private:
  void Part(int64_t begin, int64_t end) {
    const DenormalsAsZero denormals(disable_denormals_);
    std::array<size_t, D> at;
    int64_t rest = begin;
    for (size_t d = D; d-- > 0; rest /= counts_[d]) at[d] = static_cast<size_t>(rest % counts_[d]) * steps_[d];
    for (int64_t i = begin; i < end; ++i) {
      Call(at, std::make_index_sequence<D>(), std::make_index_sequence<T>());
      for (size_t d = D; d-- > 0;) {
        at[d] += steps_[d];
        if (at[d] < ranges_[d]) break;
        at[d] = 0;
      }
    }
  }

  template <size_t... I, size_t... J>
  void Call(const std::array<size_t, D>& at, std::index_sequence<I...>, std::index_sequence<J...>) {
    task_(context_, at[I]..., Size(at, D - T + J)...);
  }

  size_t Size(const std::array<size_t, D>& at, size_t d) const {
    return ranges_[d] - at[d] < steps_[d] ? ranges_[d] - at[d] : steps_[d];
  }

  Task task_;
  void* context_;
  std::array<size_t, D> ranges_;
  std::array<size_t, D> steps_;
  std::array<int64_t, D> counts_;
  int64_t total_ = 1;
  bool disable_denormals_;
};

template <size_t D, size_t T, typename Task>
void Run(const void* pool, Task task, void* context, std::array<size_t, D> ranges, std::array<size_t, T> tiles,
         uint32_t flags) {
  Grid<D, T, Task>(task, context, ranges, tiles, flags).Run(pool);
}

template <typename... Sizes>
using TaskOf = void (*)(void*, Sizes...);

}  // namespace

extern "C" {

/// Tells that this is not the original (see operators/pool.cc).
void collage_shared_pthreadpool() {}

/// Every pool is the process's one; its number of threads is set elsewhere.
void* pthreadpool_create(size_t) { return reinterpret_cast<void*>(&collage_shared_pthreadpool); }
void pthreadpool_destroy(void*) {}
size_t pthreadpool_get_threads_count(const void* pool) {
  return pool == nullptr ? 1 : static_cast<size_t>(collage::NumThreads());
}

void pthreadpool_parallelize_1d(const void* pool, TaskOf<size_t> task, void* context, size_t i, uint32_t flags) {
  Run<1, 0>(pool, task, context, {i}, {}, flags);
}
void pthreadpool_parallelize_1d_tile_1d(const void* pool, TaskOf<size_t, size_t> task, void* context, size_t i,
                                        size_t tile_i, uint32_t flags) {
  Run<1, 1>(pool, task, context, {i}, {tile_i}, flags);
}
void pthreadpool_parallelize_2d(const void* pool, TaskOf<size_t, size_t> task, void* context, size_t i, size_t j,
                                uint32_t flags) {
  Run<2, 0>(pool, task, context, {i, j}, {}, flags);
}
void pthreadpool_parallelize_2d_tile_1d(const void* pool, TaskOf<size_t, size_t, size_t> task, void* context, size_t i,
                                        size_t j, size_t tile_j, uint32_t flags) {
  Run<2, 1>(pool, task, context, {i, j}, {tile_j}, flags);
}
void pthreadpool_parallelize_2d_tile_2d(const void* pool, TaskOf<size_t, size_t, size_t, size_t> task, void* context,
                                        size_t i, size_t j, size_t tile_i, size_t tile_j, uint32_t flags) {
  Run<2, 2>(pool, task, context, {i, j}, {tile_i, tile_j}, flags);
}
void pthreadpool_parallelize_3d(const void* pool, TaskOf<size_t, size_t, size_t> task, void* context, size_t i,
                                size_t j, size_t k, uint32_t flags) {
  Run<3, 0>(pool, task, context, {i, j, k}, {}, flags);
}
void pthreadpool_parallelize_3d_tile_2d(const void* pool, TaskOf<size_t, size_t, size_t, size_t, size_t> task,
                                        void* context, size_t i, size_t j, size_t k, size_t tile_j, size_t tile_k,
                                        uint32_t flags) {
  Run<3, 2>(pool, task, context, {i, j, k}, {tile_j, tile_k}, flags);
}
void pthreadpool_parallelize_4d(const void* pool, TaskOf<size_t, size_t, size_t, size_t> task, void* context, size_t i,
                                size_t j, size_t k, size_t l, uint32_t flags) {
  Run<4, 0>(pool, task, context, {i, j, k, l}, {}, flags);
}
void pthreadpool_parallelize_4d_tile_2d(const void* pool, TaskOf<size_t, size_t, size_t, size_t, size_t, size_t> task,
                                        void* context, size_t i, size_t j, size_t k, size_t l, size_t tile_k,
                                        size_t tile_l, uint32_t flags) {
  Run<4, 2>(pool, task, context, {i, j, k, l}, {tile_k, tile_l}, flags);
}
void pthreadpool_parallelize_5d(const void* pool, TaskOf<size_t, size_t, size_t, size_t, size_t> task, void* context,
                                size_t i, size_t j, size_t k, size_t l, size_t m, uint32_t flags) {
  Run<5, 0>(pool, task, context, {i, j, k, l, m}, {}, flags);
}
void pthreadpool_parallelize_5d_tile_2d(const void* pool,
                                        TaskOf<size_t, size_t, size_t, size_t, size_t, size_t, size_t> task,
                                        void* context, size_t i, size_t j, size_t k, size_t l, size_t m, size_t tile_l,
                                        size_t tile_m, uint32_t flags) {
  Run<5, 2>(pool, task, context, {i, j, k, l, m}, {tile_l, tile_m}, flags);
}
void pthreadpool_parallelize_6d_tile_2d(const void* pool,
                                        TaskOf<size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t> task,
                                        void* context, size_t i, size_t j, size_t k, size_t l, size_t m, size_t n,
                                        size_t tile_m, size_t tile_n, uint32_t flags) {
  Run<6, 2>(pool, task, context, {i, j, k, l, m, n}, {tile_m, tile_n}, flags);
}

}  // extern "C"
