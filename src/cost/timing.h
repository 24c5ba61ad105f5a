// timing.h: how Collage times things.
//
// Method: the steady clock around batches of runs. A batch is as many runs as take `min_batch_seconds` together, so
// that the clock's own cost (about 25 ns) stays below 1 %. Warm-up runs come first and are not counted. Samples are
// taken until `min_samples` and `min_seconds` are both reached, or `max_seconds` is spent. Estimator: the p50 of the
// batch means; the minimum is kept beside it, since on a shared machine noise only ever adds.
//
// A kernel of a large model never finds its weights where its last run left them: everything else ran in between. Such
// a kernel is timed one run at a time, caches evicted before each, its inputs read again as their maker would have left
// them. Timed warm, the partitions of MobileNetV2 add up to 14 % less than the model takes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
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

/// Where a model that touches `bytes` per run leaves what it touched, on this machine.
CacheLevel LevelFor(int64_t bytes);

struct TimingOptions {
  double warmup_seconds = 0.002;
  double min_batch_seconds = 20e-6;
  double min_seconds = 0.015;
  double max_seconds = 1.0;
  int min_samples = 7;
  /// Where operands that only this kernel reads are when it runs.
  CacheLevel operands = CacheLevel::kNear;
};

/// Seconds per run, one entry per batch, in the order taken.
class Samples {
 public:
  void Add(double seconds) { values_.push_back(seconds); }
  size_t size() const { return values_.size(); }
  const std::vector<double>& values() const { return values_; }
  /// The `fraction` quantile by linear interpolation, 0 <= fraction <= 1; 0 when there are no samples.
  double Quantile(double fraction) const;
  double minimum() const { return Quantile(0.0); }
  double p50() const { return Quantile(0.5); }
  double p90() const { return Quantile(0.9); }
  double p99() const { return Quantile(0.99); }

 private:
  std::vector<double> values_;
};

/// Times `run` alone. With operands beyond the near caches, `read_inputs` is called after each eviction.
Samples TimeRuns(const std::function<void()>& run, const TimingOptions& options = {},
                 const std::function<void()>& read_inputs = nullptr);

/// Reads memory so that it is in the nearest caches that it fits, each of the pool's threads a part: as a kernel before
/// this one leaves its results, and the threads awake.
void ReadThrough(const void* address, size_t bytes);

/// Runs shorter than this are settled when they are timed in turn; longer ones find nothing in the caches anyway.
constexpr double kSettleBelowSeconds = 0.01;

/// Times several contestants interleaved, one run of each in turn for `rounds` rounds, the order rotated each round so
/// that none always follows the same neighbour. What disturbs the machine then disturbs all alike. With `settle`, an
/// untimed run comes before each timed one: it finds the caches as repeated runs leave them, not as its neighbour did.
std::vector<Samples> TimeInterleaved(std::span<const std::function<void()>> runs, int rounds, bool settle = false,
                                     const std::function<void(int round)>& on_round = nullptr);

}  // namespace collage
