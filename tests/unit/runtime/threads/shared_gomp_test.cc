// shared_gomp_test.cc: OpenMP on the pool: its entry points, and a vendor's library that computes through them.
#include "runtime/threads/shared_gomp.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collage/runtime/thread_pool.h"
#include "runtime/threads/team.h"

namespace collage {
namespace {

/// The functions that GCC generates calls of.
struct OpenMp {
  int (*max_threads)();
  int (*num_threads)();
  int (*thread_num)();
  int (*in_parallel)();
  void (*set_num_threads)(int);
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned);
  void (*parallel_start)(void (*)(void*), void*, unsigned);
  void (*parallel_end)();
  void (*barrier)();
  bool (*static_start)(long, long, long, long, long*, long*);
  bool (*static_next)(long*, long*);
  void (*loop_end_nowait)();
};

/// Loads ours; a test process has no other.
const OpenMp& Omp() {
  static const OpenMp omp = [] {
    const std::optional<Reason> refusal = UseSharedGomp();
    EXPECT_FALSE(refusal.has_value()) << refusal->text;
    void* library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    const auto find = [&]<typename F>(F*& function, const char* name, const char* version) {
      function = reinterpret_cast<F*>(dlvsym(library, name, version));
      EXPECT_NE(function, nullptr) << name << "@" << version;
    };
    OpenMp found{};
    find(found.max_threads, "omp_get_max_threads", "OMP_1.0");
    find(found.num_threads, "omp_get_num_threads", "OMP_1.0");
    find(found.thread_num, "omp_get_thread_num", "OMP_1.0");
    find(found.in_parallel, "omp_in_parallel", "OMP_1.0");
    find(found.set_num_threads, "omp_set_num_threads", "OMP_1.0");
    find(found.parallel, "GOMP_parallel", "GOMP_4.0");
    find(found.parallel_start, "GOMP_parallel_start", "GOMP_1.0");
    find(found.parallel_end, "GOMP_parallel_end", "GOMP_1.0");
    find(found.barrier, "GOMP_barrier", "GOMP_1.0");
    find(found.static_start, "GOMP_loop_static_start", "GOMP_1.0");
    find(found.static_next, "GOMP_loop_static_next", "GOMP_1.0");
    find(found.loop_end_nowait, "GOMP_loop_end_nowait", "GOMP_1.0");
    return found;
  }();
  return omp;
}

TEST(SharedGomp, MayBeAskedForAgain) {
  Omp();
  EXPECT_FALSE(UseSharedGomp().has_value());
}

TEST(SharedGomp, OutsideOfRegionsThereIsOneThread) {
  const OpenMp& omp = Omp();
  EXPECT_EQ(omp.num_threads(), 1);
  EXPECT_EQ(omp.thread_num(), 0);
  EXPECT_EQ(omp.in_parallel(), 0);
}

TEST(SharedGomp, MaximumIsThePoolsUnlessSet) {
  const OpenMp& omp = Omp();
  std::thread([&] {  // the setting is the thread's
    SetNumThreads(3);
    EXPECT_EQ(omp.max_threads(), 3);
    omp.set_num_threads(2);
    EXPECT_EQ(omp.max_threads(), 2);
    EXPECT_EQ(NumThreads(), 3);
    SetNumThreads(1);
  })
      .join();
}

struct Visits {
  std::array<std::atomic<int>, 8> by_thread{};
  std::atomic<int> wrong{0};
  int expected_threads = 0;
};

void Visit(void* data) {
  auto& visits = *static_cast<Visits*>(data);
  const OpenMp& omp = Omp();
  if (omp.num_threads() != visits.expected_threads || omp.in_parallel() == 0) ++visits.wrong;
  ++visits.by_thread[static_cast<size_t>(omp.thread_num())];
  omp.barrier();
  for (int i = 0; i < visits.expected_threads; ++i) {
    if (visits.by_thread[static_cast<size_t>(i)] < 1) ++visits.wrong;
  }
  omp.barrier();
}

TEST(SharedGomp, RegionRunsOnceOnEveryThreadAtTheSameTime) {
  for (int threads : {1, 2, 4}) {
    Visits visits;
    visits.expected_threads = threads;
    Omp().parallel(Visit, &visits, static_cast<unsigned>(threads), 0);
    EXPECT_EQ(visits.wrong, 0);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(visits.by_thread[static_cast<size_t>(i)], i < threads ? 1 : 0);
  }
}

TEST(SharedGomp, OldCompilersCallTheBodyThemselves) {
  Visits visits;
  visits.expected_threads = 3;
  for (int i = 0; i < 50; ++i) {
    Omp().parallel_start(Visit, &visits, 3);
    Visit(&visits);
    Omp().parallel_end();
  }
  EXPECT_EQ(visits.wrong, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(visits.by_thread[static_cast<size_t>(i)], 50);
  EXPECT_EQ(Omp().in_parallel(), 0);
}

struct Loop {
  long start, stop, step, chunk;
  std::mutex mutex;
  std::vector<long> iterations;
  std::atomic<int> wrong{0};
};

void RunLoop(void* data) {
  auto& loop = *static_cast<Loop*>(data);
  const OpenMp& omp = Omp();
  long begin = 0;
  long end = 0;
  if (omp.static_start(loop.start, loop.stop, loop.step, loop.chunk, &begin, &end)) {
    do {
      const std::lock_guard lock(loop.mutex);
      long pieces = 0;
      for (long i = begin; loop.step > 0 ? i < end : i > end; i += loop.step) {
        loop.iterations.push_back(i);
        ++pieces;
      }
      if (pieces == 0 || (loop.chunk > 0 && pieces > loop.chunk)) ++loop.wrong;
    } while (omp.static_next(&begin, &end));
  }
  omp.loop_end_nowait();
}

TEST(SharedGomp, StaticLoopsVisitEveryIterationOnce) {
  for (unsigned threads : {1u, 2u, 3u, 5u}) {
    for (long chunk : {0, 1, 2, 7, 100}) {
      for (const auto& [start, stop, step] : {std::array<long, 3>{0, 17, 1},
                                              {0, 1, 1},
                                              {5, 5, 1},
                                              {3, 40, 4},
                                              {0, 1000, 1},
                                              {10, -11, -3},
                                              {9, 0, -1},
                                              {7, 3, 1},
                                              {0, 2, 1}}) {
        Loop loop{start, stop, step, chunk, {}, {}, {}};
        Omp().parallel(RunLoop, &loop, threads, 0);
        std::vector<long> expected;
        for (long i = start; step > 0 ? i < stop : i > stop; i += step) expected.push_back(i);
        std::sort(expected.begin(), expected.end());
        std::sort(loop.iterations.begin(), loop.iterations.end());
        EXPECT_EQ(loop.iterations, expected) << start << ":" << stop << ":" << step << " chunk " << chunk;
        EXPECT_EQ(loop.wrong, 0);
      }
    }
  }
}

TEST(SharedGomp, NestedRegionsHaveOneThreadAndTheirOwnLoops) {
  const OpenMp& omp = Omp();
  std::atomic<int> wrong{0};
  omp.parallel(
      [](void* data) {
        const OpenMp& inner = Omp();
        long begin = 0;
        long end = 0;
        long seen = 0;
        if (!inner.static_start(0, 12, 1, 1, &begin, &end)) ++*static_cast<std::atomic<int>*>(data);
        do {
          ++seen;
          Loop loop{0, 10, 1, 2, {}, {}, {}};
          inner.parallel(RunLoop, &loop, 4, 0);
          if (loop.iterations.size() != 10 || inner.num_threads() != 3) ++*static_cast<std::atomic<int>*>(data);
        } while (inner.static_next(&begin, &end));
        if (seen != 4) ++*static_cast<std::atomic<int>*>(data);
      },
      &wrong, 3, 0);
  EXPECT_EQ(wrong, 0);
}

/// Paths of all libraries of this process whose name contains `part`.
std::vector<std::string> MappedLibraries(const std::string& part) {
  std::vector<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos || line.find(part, line.rfind('/')) == std::string::npos) continue;
    if (paths.empty() || paths.back() != line.substr(slash)) paths.push_back(line.substr(slash));
  }
  return paths;
}

#ifdef COLLAGE_OPENMP_LIBRARY

/// Multiplies matrices with the vendor's library; the largest error against a plain loop.
float MultiplyWithVendor() {
  using Sgemm = int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float,
                    float*, int64_t);
  void* library = dlopen(COLLAGE_OPENMP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return INFINITY;
  auto* sgemm = reinterpret_cast<Sgemm*>(dlsym(library, "dnnl_sgemm"));
  constexpr int64_t kM = 150;
  constexpr int64_t kN = 170;
  constexpr int64_t kK = 190;
  std::vector<float> a(kM * kK);
  std::vector<float> b(kK * kN);
  std::vector<float> c(kM * kN);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 13) - 6;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  if (sgemm('N', 'N', kM, kN, kK, 1, a.data(), kK, b.data(), kN, 0, c.data(), kN) != 0) return INFINITY;
  float error = 0;
  for (int64_t m = 0; m < kM; ++m) {
    for (int64_t n = 0; n < kN; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < kK; ++k) sum += a[static_cast<size_t>(m * kK + k)] * b[static_cast<size_t>(k * kN + n)];
      error = std::max(error, std::abs(sum - c[static_cast<size_t>(m * kN + n)]));
    }
  }
  return error;
}

TEST(SharedGomp, VendorsLibraryComputesOnThePool) {
  Omp();
  SetNumThreads(2);
  EXPECT_EQ(MultiplyWithVendor(), 0);
  SetNumThreads(1);
  const std::vector<std::string> loaded = MappedLibraries("gomp");
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_NE(loaded[0].find("collage_gomp/libgomp.so.1"), std::string::npos) << loaded[0];
}

#endif

/// Ends the process with 0 when a libgomp that is there already makes UseSharedGomp say no, and all works the same.
void CheckBesideAnotherGomp() {
  if (dlopen("libgomp.so.1", RTLD_NOW) == nullptr) _exit(42);
  const std::optional<Reason> refusal = UseSharedGomp();
  if (!refusal || refusal->text != "the process has already loaded another libgomp.so.1") _exit(1);
#ifdef COLLAGE_OPENMP_LIBRARY
  if (MultiplyWithVendor() != 0) _exit(2);
#endif
  _exit(0);
}

TEST(SharedGompDeathTest, AnotherGompIsLeftAlone) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // runs this test alone in a fresh process
  const auto has_no_gomp = [](int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42);
  };
  EXPECT_EXIT(CheckBesideAnotherGomp(), has_no_gomp, "");
}

}  // namespace
}  // namespace collage
