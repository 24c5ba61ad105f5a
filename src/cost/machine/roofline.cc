// roofline.cc: counting work, and measuring how fast this machine can be.
#include "cost/machine/roofline.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "collage/runtime/thread_pool.h"
#include "support/clones.h"

namespace collage {
namespace {

// Measured rates vary with clock and neighbours; a bound must hold in the best moment of all.
constexpr double kMargin = 1.05;
constexpr int kRepeats = 25;
// Bytes that a repeat moves at least, if the caller gives their number.
constexpr int64_t kBytesInAll = 32 << 20;

/// Twelve independent products are added up `rounds` times: enough sums to hide the latency of an addition, few enough
/// for sixteen registers.
template <int lanes>
__attribute__((always_inline)) inline float SumProductsOf(int64_t rounds, float factor) {
  using Floats = typename Lanes<float, lanes>::Of;
  constexpr int kSums = 12;
  Floats sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = Floats{} + static_cast<float>(i);
  const Floats x = Floats{} + factor;
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * x + x;
  }
  float all = 0;
  for (int i = 0; i < kSums; ++i) {
    for (int lane = 0; lane < lanes; ++lane) all += sums[i][lane];
  }
  return all;
}
COLLAGE_CLONES float SumProducts16(int64_t rounds, float factor) { return SumProductsOf<16>(rounds, factor); }
COLLAGE_CLONES float SumProducts8(int64_t rounds, float factor) { return SumProductsOf<8>(rounds, factor); }
COLLAGE_CLONES float SumProducts4(int64_t rounds, float factor) { return SumProductsOf<4>(rounds, factor); }

template <int lanes>
__attribute__((always_inline)) inline float SumAllOf(const float* from, int64_t count, int64_t times) {
  using Floats = typename Lanes<float, lanes>::Of;
  constexpr int kParallel = 8;
  Floats sums[kParallel] = {};
  for (int64_t time = 0; time < times; ++time) {
    for (int64_t i = 0; i + kParallel * lanes <= count; i += kParallel * lanes) {
#pragma GCC unroll 8
      for (int j = 0; j < kParallel; ++j) {
        sums[j] += *reinterpret_cast<const Floats*>(from + i + static_cast<int64_t>(j) * lanes);
      }
    }
    asm volatile("" ::: "memory");
  }
  float all = 0;
  for (const Floats& sum : sums) all += sum[0] + sum[lanes - 1];
  return all;
}
COLLAGE_CLONES float SumAll16(const float* from, int64_t count, int64_t times) {
  return SumAllOf<16>(from, count, times);
}
COLLAGE_CLONES float SumAll8(const float* from, int64_t count, int64_t times) {
  return SumAllOf<8>(from, count, times);
}
COLLAGE_CLONES float SumAll4(const float* from, int64_t count, int64_t times) {
  return SumAllOf<4>(from, count, times);
}

template <int lanes>
__attribute__((always_inline)) inline void CopyAllOf(float* first, float* second, int64_t count, int64_t times) {
  using Floats = typename Lanes<float, lanes>::Of;
  constexpr int kParallel = 4;
  for (int64_t time = 0; time < times; ++time) {
    for (int64_t i = 0; i + kParallel * lanes <= count; i += kParallel * lanes) {
#pragma GCC unroll 4
      for (int64_t j = i; j < i + kParallel * lanes; j += lanes) {
        *reinterpret_cast<Floats*>(second + j) = *reinterpret_cast<const Floats*>(first + j);
      }
      asm volatile("" ::: "memory");  // lest the loop become a call of memcpy
    }
    std::swap(first, second);
  }
}
COLLAGE_CLONES void CopyAll16(float* first, float* second, int64_t count, int64_t times) {
  CopyAllOf<16>(first, second, count, times);
}
COLLAGE_CLONES void CopyAll8(float* first, float* second, int64_t count, int64_t times) {
  CopyAllOf<8>(first, second, count, times);
}
COLLAGE_CLONES void CopyAll4(float* first, float* second, int64_t count, int64_t times) {
  CopyAllOf<4>(first, second, count, times);
}

/// The shortest of some runs of `run` on all threads, each told its number.
template <typename Run>
double ShortestSeconds(Run run) {
  double shortest = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto started = std::chrono::steady_clock::now();
    ParallelFor(
        NumThreads(),
        [](void* of, int64_t begin, int64_t end) {
          for (int64_t thread = begin; thread < end; ++thread) (*static_cast<Run*>(of))(thread);
        },
        &run);
    shortest = std::min(shortest, std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  return shortest;
}

volatile float g_sink;  // so that nothing measured is left out

/// A buffer for each of `number` of the pool's threads, each of which begins a cache line.
class Buffers {
 public:
  Buffers(int number, int64_t count) : all_(static_cast<size_t>(number), std::vector<float>(count + kAlign, 1.0F)) {}

  float* operator[](int64_t thread) {
    float* begin = all_[static_cast<size_t>(thread)].data();
    while (reinterpret_cast<uintptr_t>(begin) % 64 != 0) ++begin;
    return begin;
  }

 private:
  static constexpr int64_t kAlign = 64 / sizeof(float);
  std::vector<std::vector<float>> all_;
};

int RegisterLanes() { return RegisterBytes() / static_cast<int>(sizeof(float)); }

/// Each thread reads `bytes` of its own, `times` times.
double ReadRate(int64_t bytes, int64_t times) {
  const auto count = bytes / static_cast<int64_t>(sizeof(float));
  Buffers buffers(NumThreads(), count);
  const int lanes = RegisterLanes();
  const auto sum_all = lanes == 16 ? SumAll16 : lanes == 8 ? SumAll8 : SumAll4;
  const double seconds = ShortestSeconds([&](int64_t thread) { g_sink = sum_all(buffers[thread], count, times); });
  return static_cast<double>(bytes * times * NumThreads()) / seconds;
}

double SecondsAt(double amount, double rate) { return rate > 0 ? amount / (rate * kMargin) : 0; }

}  // namespace

double MeasureMultiplyAddRate() {
  constexpr int64_t kRounds = 200'000;
  constexpr int64_t kSums = 12;
  const int lanes = RegisterLanes();
  const auto sum_products = lanes == 16 ? SumProducts16 : lanes == 8 ? SumProducts8 : SumProducts4;
  const double seconds = ShortestSeconds([&](int64_t) { g_sink = sum_products(kRounds, 0.5F); });
  return static_cast<double>(kRounds * kSums * lanes * NumThreads()) / seconds;
}

double MeasureReadRate(int64_t bytes) { return ReadRate(bytes, std::max<int64_t>(kBytesInAll / bytes, 1)); }

double MeasureCopyRate(int64_t bytes) {
  const auto count = bytes / 2 / static_cast<int64_t>(sizeof(float));
  const int64_t times = std::max<int64_t>(kBytesInAll / bytes, 1);
  Buffers first(NumThreads(), count);
  Buffers second(NumThreads(), count);
  const int lanes = RegisterLanes();
  const auto copy_all = lanes == 16 ? CopyAll16 : lanes == 8 ? CopyAll8 : CopyAll4;
  const double seconds =
      ShortestSeconds([&](int64_t thread) { copy_all(first[thread], second[thread], count, times); });
  return static_cast<double>(bytes * times * NumThreads()) / seconds;
}

double MeasureReadRate(CacheLevel level) {
  constexpr int64_t kInnermost = 16 << 10;  // fits the first cache of every processor
  constexpr int64_t kMostBytes = 256 << 20;
  if (level == CacheLevel::kNear) return ReadRate(kInnermost, 2000);
  const int64_t shared = CacheBytes(CacheLevel::kShared);
  if (level == CacheLevel::kMemory) return ReadRate(std::min(4 * shared, kMostBytes) / NumThreads(), 1);
  return ReadRate(std::max(2 * CacheBytes(CacheLevel::kNear), shared / 4 / NumThreads()), 4);
}

double MovingSeconds(const Work& work, const MachineRates& rates, int num_threads, CacheLevel operands) {
  const auto read = [&](double bytes, CacheLevel level) {
    return SecondsAt(bytes, rates.bytes[static_cast<size_t>(level)]);
  };
  // Boundary values that do not fit a cache come from the next one.
  const auto near = static_cast<double>(CacheBytes(CacheLevel::kNear)) * num_threads;
  const auto shared = static_cast<double>(CacheBytes(CacheLevel::kShared));
  const double beyond_near = std::max(0.0, work.boundary_bytes - near);
  const double beyond_shared = std::max(0.0, work.boundary_bytes - shared);
  return read(work.constant_bytes, operands) + read(work.boundary_bytes - beyond_near, CacheLevel::kNear) +
         read(std::max(0.0, beyond_near - beyond_shared), CacheLevel::kShared) +
         read(beyond_shared, CacheLevel::kMemory);
}

double RooflineSeconds(const Work& work, const MachineRates& rates, int num_threads, CacheLevel operands) {
  return std::max(SecondsAt(work.multiply_adds - work.spared, rates.multiply_adds),
                  MovingSeconds(work, rates, num_threads, operands));
}

}  // namespace collage
