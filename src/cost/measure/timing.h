// timing.h: how Collage times things.
//
// Method: the steady clock around batches of runs. A batch is as many runs as take `min_batch_seconds` together, so
// that the clock's own cost (about 25 ns) stays below 1 %. Warm-up runs come first and are not counted. Estimator: a
// percentile (the median by default) of the batch means; the minimum is kept beside it, since on a shared machine noise
// only ever adds.
//
// Samples are taken until `min_samples` and `min_seconds` are reached and the 95 % confidence interval of the
// percentile is narrower than `max_half_width` on either side, or `budget_seconds` is spent. The interval is by order
// statistics and assumes nothing of the distribution: of n samples, the number below the p-quantile is binomial(n, p),
// so the samples of ranks l and u enclose the quantile unless fewer than l, or u and more, are below it, each of
// probability 2.5 % at most (Conover, "Practical Nonparametric Statistics", 3.2). It holds for what the machine did
// meanwhile; what it does at other times is the business of drift.h.
//
// A kernel of a large model never finds its weights where its last run left them: everything else ran in between. Such
// a kernel is timed one run at a time, caches evicted before each, its inputs read again as their maker would have left
// them. Timed warm, the partitions of MobileNetV2 add up to 14 % less than the model takes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage {

/// Levels of the memory hierarchy, as far as it matters for timing.
enum class CacheLevel : uint8_t {
  kNear,    ///< a core's own caches
  kShared,  ///< the last level cache
  kMemory,
};

/// "near", "shared" or "memory"; throws kInput for anything else.
CacheLevel CacheLevelFromString(const std::string& text);

/// Size of a core's own caches, or of the last level one; not for kMemory.
int64_t CacheBytes(CacheLevel level);

/// Returns the cache level that holds the operands of a model that touches `bytes` per run, on this machine.
CacheLevel LevelFor(int64_t bytes);

struct TimingOptions {
  double warmup_seconds = 0.002;
  double min_batch_seconds = 20e-6;
  double min_seconds = 0.01;
  double max_seconds = 1.0;
  int min_samples = 7;
  /// The quantile that is wanted, 0 < percentile < 1, and how far its interval may reach to each side, relative to it.
  double percentile = 0.5;
  double max_half_width = 0.02;
  /// Beyond `min_samples` and `min_seconds` no more than this is spent to narrow the interval, all counted.
  double budget_seconds = 0.15;
  /// Cache level of operands that only this kernel reads when it runs.
  CacheLevel operands = CacheLevel::kNear;
};

/// Ranks l and u, counted from 1, of two among `count` sorted samples that enclose the `fraction` quantile with a
/// probability of 95 %: the narrowest ones with 2.5 % at most on either side. Nothing when `count` is too small.
std::optional<std::pair<size_t, size_t>> IntervalRanks(size_t count, double fraction);

struct Interval {
  double low = 0;
  double high = 0;
  double half_width() const { return (high - low) / 2; }
};

/// Seconds per run, one entry per batch, in the order taken.
class Samples {
 public:
  void Add(double seconds) { values_.push_back(seconds); }
  size_t size() const { return values_.size(); }
  const std::vector<double>& values() const { return values_; }
  /// The `fraction` quantile by linear interpolation, 0 <= fraction <= 1; 0 when there are no samples.
  double Quantile(double fraction) const;
  /// The 95 % confidence interval of a quantile; nothing when there are too few samples for one.
  std::optional<Interval> QuantileInterval(double fraction) const;
  double minimum() const { return Quantile(0.0); }
  double p50() const { return Quantile(0.5); }
  double p90() const { return Quantile(0.9); }
  double p99() const { return Quantile(0.99); }

 private:
  std::vector<double> values_;
};

/// Functions that `TimeRuns` calls between the timed runs; each may be empty.
struct TimingHooks {
  enum class Check : uint8_t {
    kSame,       ///< caches are as the run left them
    kDisturbed,  ///< they are not
    kStop,       ///< no more samples
  };
  /// After each eviction.
  std::function<void()> read_inputs;
  /// After each batch, of so many runs.
  std::function<Check(int num_runs)> check;
  /// Seconds since some moment; the steady clock when empty.
  std::function<double()> now;
  /// Runs so many times and returns the seconds that this took, without those of evicting, which is its business then;
  /// by `now` around the runs when empty.
  std::function<double(int num_runs)> time_batch;
};

/// Times `run` alone.
Samples TimeRuns(const std::function<void()>& run, const TimingOptions& options = {}, const TimingHooks& hooks = {});
inline Samples TimeRuns(const std::function<void()>& run, const TimingOptions& options,
                        const std::function<void()>& read_inputs) {
  return TimeRuns(run, options, TimingHooks{.read_inputs = read_inputs});
}

/// Reads memory so that it is in the nearest caches that it fits, each of the pool's threads a part: as a kernel before
/// this one leaves its results, and the threads awake.
void ReadThrough(const void* address, size_t bytes);

/// Leaves in the caches up to `level` nothing of what was there, on every processor of the pool.
void EvictCaches(CacheLevel level);

/// Runs shorter than this are settled when they are timed in turn; longer ones find nothing in the caches anyway.
constexpr double kSettleBelowSeconds = 0.01;

/// Times several runs interleaved, one of each in turn for `rounds` rounds. The order rotates each round, so that none
/// always follows the same neighbour; a disturbance of the machine then affects all alike. With `settle`, an untimed
/// run comes before each timed one: it finds the caches as repeated runs leave them, not as its neighbour did.
std::vector<Samples> TimeInterleaved(std::span<const std::function<void()>> runs, int rounds, bool settle = false,
                                     const std::function<void(int round)>& on_round = nullptr);

}  // namespace collage
