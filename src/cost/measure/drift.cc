// drift.cc: the fixed kernel and what its times say.
#include "cost/measure/drift.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "collage/runtime/thread_pool.h"

namespace collage {
namespace {

constexpr int kProductSteps = 6000;               // of 16 products each
constexpr size_t kReadBytes = size_t{256} << 10;  // per thread
constexpr int kRunsPerReading = 7;
constexpr uint64_t kFirstReadings = 8;
constexpr size_t kSharedSettings = 16;  // numbers of threads; more share the last one's readings
constexpr double kMargin = 1.1;
constexpr int kAttempts = 3;

struct KernelData {
  std::vector<unsigned char> bytes;
  std::vector<float> results;  // one cache line for each thread
};

constexpr size_t kLineFloats = 16;

void RunPart(void* context, int64_t begin, int64_t end) {
  auto& data = *static_cast<KernelData*>(context);
  for (int64_t part = begin; part < end; ++part) {
    float sums[16] = {};
    for (int step = 0; step < kProductSteps; ++step) {
      for (float& sum : sums) sum = sum * 0.999F + 1.0F;
    }
    float total = 0;
    for (const float sum : sums) total += sum;
    const volatile unsigned char* from = data.bytes.data() + static_cast<size_t>(part) * kReadBytes;
    for (size_t i = 0; i < kReadBytes; i += 64) total += static_cast<float>(from[i]);
    data.results[static_cast<size_t>(part) * kLineFloats] = total;
  }
}

/// Readings for a number of threads, in memory that processes forked later share; null when there is none.
DriftReadings* SharedReadings(int threads) {
  static DriftReadings* const all = [] {
    void* memory = mmap(nullptr, kSharedSettings * sizeof(DriftReadings), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<DriftReadings*>(memory);  // zeros, as it begins
  }();
  if (all == nullptr) return nullptr;
  return all + std::min(static_cast<size_t>(threads), kSharedSettings) - 1;
}

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

double ReferenceKernelSeconds() {
  static KernelData data;
  const auto threads = static_cast<size_t>(NumThreads());
  if (data.bytes.size() < threads * kReadBytes) {
    data.bytes.assign(threads * kReadBytes, 1);
    data.results.assign(threads * kLineFloats, 0);
  }
  Samples samples;
  ParallelFor(NumThreads(), &RunPart, &data);  // wakes the threads and fills the caches
  for (int run = 0; run < kRunsPerReading; ++run) {
    const double before = Now();
    ParallelFor(NumThreads(), &RunPart, &data);
    samples.Add(Now() - before);
  }
  return samples.p50();
}

void ShareDriftReadings() { static_cast<void>(SharedReadings(1)); }

DriftWatch::DriftWatch(std::function<double()> read, DriftReadings* readings)
    : read_(std::move(read)),
      own_(readings == nullptr ? std::make_unique<DriftReadings>() : nullptr),
      readings_(readings == nullptr ? own_.get() : readings) {}

double DriftWatch::Read() {
  double now = 0;
  do {
    now = read_();
    readings_->latest[readings_->count++ % DriftReadings::kKept] = now;
  } while (readings_->count <= kFirstReadings);
  std::array<double, DriftReadings::kKept> sorted = readings_->latest;
  const auto size = static_cast<int64_t>(std::min<uint64_t>(readings_->count, sorted.size()));
  const auto quartile = sorted.begin() + size / 4;
  std::nth_element(sorted.begin(), quartile, sorted.begin() + size);
  return *quartile > 0 ? now / *quartile : 1;
}

DriftWatch& ThisDriftWatch() {
  static std::map<int, DriftWatch> watches;
  const int threads = NumThreads();
  return watches.try_emplace(threads, ReferenceKernelSeconds, SharedReadings(threads)).first->second;
}

Undisturbed TimeUndisturbed(const std::function<Samples()>& time, DriftWatch& watch) {
  Undisturbed best;
  double before = watch.Read();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Samples samples = time();
    const double after = watch.Read();
    const double drift = std::max(before, after);
    if (attempt == 0 || drift < best.drift) best = {std::move(samples), drift};
    if (best.drift <= kMargin) break;
    before = after;
  }
  return best;
}

}  // namespace collage
