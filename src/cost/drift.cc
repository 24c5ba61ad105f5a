// drift.cc: the fixed kernel and what its times say.
#include "cost/drift.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "collage/runtime/thread_pool.h"

namespace collage {
namespace {

constexpr int kProductSteps = 6000;               // of 16 products each
constexpr size_t kReadBytes = size_t{256} << 10;  // per thread
constexpr int kRunsPerReading = 7;
constexpr size_t kLatest = 64;
constexpr size_t kFirstReadings = 8;
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

DriftWatch::DriftWatch(std::function<double()> read) : read_(std::move(read)) {}

double DriftWatch::Read() {
  while (latest_.size() < kFirstReadings) latest_.push_back(read_());
  const double now = read_();
  latest_.push_back(now);
  if (latest_.size() > kLatest) latest_.pop_front();
  std::vector<double> sorted(latest_.begin(), latest_.end());
  const auto quartile = sorted.begin() + static_cast<int64_t>(sorted.size() / 4);
  std::nth_element(sorted.begin(), quartile, sorted.end());
  return *quartile > 0 ? now / *quartile : 1;
}

DriftWatch& ThisDriftWatch() {
  static std::map<int, DriftWatch> watches;
  return watches[NumThreads()];
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
