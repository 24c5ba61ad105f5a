// timing.cc: see timing.h for the method.
#include "cost/measure/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "support/machine.h"

namespace collage {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Usual size in processors of this decade, if the system does not say.
constexpr int64_t kUsualNearBytes = int64_t{1} << 20;
constexpr int64_t kUsualSharedBytes = int64_t{32} << 20;

/// Returns the time between two successive readings of the clock, the median of many.
double ClockSeconds() {
  static const double seconds = [] {
    Samples samples;
    for (int i = 0; i < 1001; ++i) {
      const double before = Now();
      samples.Add(Now() - before);
    }
    return samples.p50();
  }();
  return seconds;
}

void ReadLines(const volatile unsigned char* from, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; i < bytes; i += kLine) (void)from[i];
}

}  // namespace

double Samples::Quantile(double fraction) const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - static_cast<double>(below));
}

std::optional<std::pair<size_t, size_t>> IntervalRanks(size_t count, double fraction) {
  constexpr double kTail = 0.025;
  const auto n = static_cast<double>(count);
  double below = 0;  // probability that fewer than `rank` samples are below the quantile
  size_t low = 0;
  for (size_t rank = 1; rank <= count + 1; ++rank) {
    const auto k = static_cast<double>(rank - 1);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(fraction) +
                      (n - k) * std::log1p(-fraction));
    if (below <= kTail) low = rank;
    // From here on as many as `rank` or more are below it with the rest of the probability.
    if (1 - below <= kTail && rank <= count) {
      return low == 0 ? std::nullopt : std::make_optional(std::make_pair(low, rank));
    }
  }
  return std::nullopt;
}

std::optional<Interval> Samples::QuantileInterval(double fraction) const {
  const auto ranks = IntervalRanks(values_.size(), fraction);
  if (!ranks) return std::nullopt;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  return Interval{sorted[ranks->first - 1], sorted[ranks->second - 1]};
}

CacheLevel CacheLevelFromString(const std::string& text) {
  if (text == "near") return CacheLevel::kNear;
  if (text == "shared") return CacheLevel::kShared;
  if (text == "memory") return CacheLevel::kMemory;
  throw Error(ErrorCategory::kInput, fmt::format("'{}' is no level of memory", text), "", "near, shared or memory");
}

int64_t CacheBytes(CacheLevel level) {
  static const int64_t near = CacheSize(2, kUsualNearBytes);
  static const int64_t shared = CacheSize(3, kUsualSharedBytes);
  return level == CacheLevel::kNear ? near : shared;
}

CacheLevel LevelFor(int64_t bytes) {
  if (bytes <= CacheBytes(CacheLevel::kNear)) return CacheLevel::kNear;
  return bytes <= CacheBytes(CacheLevel::kShared) ? CacheLevel::kShared : CacheLevel::kMemory;
}

void ReadThrough(const void* address, size_t bytes) {
  ParallelFor(
      static_cast<int64_t>(bytes),
      [](void* from, int64_t begin, int64_t end) { ReadLines(static_cast<unsigned char*>(from) + begin, end - begin); },
      const_cast<void*>(address));
}

void EvictCaches(CacheLevel level) {
  // Twice the last level, or four times the near one per thread: replacement is not strictly the least recent.
  const int64_t bytes = level == CacheLevel::kMemory ? 2 * CacheBytes(CacheLevel::kShared)
                                                     : 4 * CacheBytes(CacheLevel::kNear) * NumThreads();
  static std::vector<unsigned char> buffer;
  if (buffer.size() < static_cast<size_t>(bytes)) buffer.assign(static_cast<size_t>(bytes), 1);
  ReadThrough(buffer.data(), static_cast<size_t>(bytes));
}

namespace {

double TimeBatch(const std::function<void()>& run, int num_runs, const std::function<double()>& now) {
  const double before = now();
  for (int i = 0; i < num_runs; ++i) run();
  return now() - before;
}

/// Whether the interval of the wanted percentile is narrow enough.
bool IsPrecise(const Samples& samples, const TimingOptions& options) {
  const std::optional<Interval> interval = samples.QuantileInterval(options.percentile);
  return interval && interval->half_width() <= options.max_half_width * samples.Quantile(options.percentile);
}

}  // namespace

Samples TimeRuns(const std::function<void()>& run, const TimingOptions& options, const TimingHooks& hooks) {
  const auto now = [&] { return hooks.now ? hooks.now() : Now(); };
  const double started = now();
  double first = 0;  // the shortest warm-up run sizes the batches
  for (int runs = 0; runs < 2 || now() - started < options.warmup_seconds; ++runs) {
    const double before = now();
    double taken = 0;
    if (hooks.time_batch) {
      taken = hooks.time_batch(1);
    } else {
      run();
      taken = now() - before;
    }
    if (runs > 0 && (runs == 1 || taken < first)) first = taken;
    if (runs > 0 && now() - started > options.max_seconds / 2) break;
  }
  const bool evicts = options.operands != CacheLevel::kNear;
  const int batch =
      evicts ? 1 : std::clamp(static_cast<int>(std::ceil(options.min_batch_seconds / std::max(first, 1e-9))), 1, 1000);
  const double clock = evicts && !hooks.now && !hooks.time_batch ? ClockSeconds() : 0;
  Samples samples;
  double counted = 0;  // by the samples themselves
  const double counted_from = now();
  // The interval is looked at whenever the samples have become an eighth more.
  size_t next_look = static_cast<size_t>(options.min_samples);
  bool is_precise = false;
  for (;;) {
    if (evicts && !hooks.time_batch) {
      EvictCaches(options.operands);
      if (hooks.read_inputs) hooks.read_inputs();
    }
    const double taken = hooks.time_batch ? hooks.time_batch(batch) : TimeBatch(run, batch, now);
    samples.Add(std::max(taken - clock, 0.0) / batch);
    counted += taken;
    const auto check = hooks.check ? hooks.check(batch) : TimingHooks::Check::kSame;
    if (check == TimingHooks::Check::kStop) return samples;
    if (check == TimingHooks::Check::kDisturbed && !evicts) run();
    const double elapsed = now() - counted_from;
    if (elapsed >= options.max_seconds && samples.size() >= 3) return samples;
    const bool enough = samples.size() >= static_cast<size_t>(options.min_samples) &&
                        (counted >= options.min_seconds || (evicts && elapsed >= 3 * options.min_seconds));
    if (!enough) continue;
    if (samples.size() >= next_look) {
      is_precise = IsPrecise(samples, options);
      next_look = samples.size() + samples.size() / 8 + 1;
    }
    if (is_precise || elapsed >= options.budget_seconds) return samples;
  }
}

std::vector<Samples> TimeInterleaved(std::span<const std::function<void()>> runs, int rounds, bool settle,
                                     const std::function<void(int round)>& on_round) {
  std::vector<Samples> result(runs.size());
  for (int round = 0; round < rounds; ++round) {
    if (on_round) on_round(round);
    for (size_t turn = 0; turn < runs.size(); ++turn) {
      const size_t i = (turn + static_cast<size_t>(round)) % runs.size();
      if (settle) runs[i]();
      const double before = Now();
      runs[i]();
      result[i].Add(Now() - before);
    }
  }
  return result;
}

}  // namespace collage
