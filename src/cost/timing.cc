// timing.cc: see timing.h for the method.
#include "cost/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace collage {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

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

Samples TimeRuns(const std::function<void()>& run, const TimingOptions& options) {
  const double started = Now();
  double first = 0;  // the shortest warm-up run sizes the batches
  for (int runs = 0; runs < 2 || Now() - started < options.warmup_seconds; ++runs) {
    const double before = Now();
    run();
    const double taken = Now() - before;
    if (runs > 0 && (runs == 1 || taken < first)) first = taken;
    if (runs > 0 && Now() - started > options.max_seconds / 2) break;
  }
  const int batch = std::clamp(static_cast<int>(std::ceil(options.min_batch_seconds / std::max(first, 1e-9))), 1, 1000);
  Samples samples;
  const double counted_from = Now();
  for (;;) {
    const double before = Now();
    for (int i = 0; i < batch; ++i) run();
    const double after = Now();
    samples.Add((after - before) / batch);
    const double spent = after - counted_from;
    const bool enough = samples.size() >= static_cast<size_t>(options.min_samples) && spent >= options.min_seconds;
    if (enough || (spent >= options.max_seconds && samples.size() >= 3)) return samples;
  }
}

std::vector<Samples> TimeInterleaved(std::span<const std::function<void()>> runs, int rounds,
                                     const std::function<void(int round)>& on_round) {
  std::vector<Samples> result(runs.size());
  for (int round = 0; round < rounds; ++round) {
    if (on_round) on_round(round);
    for (size_t turn = 0; turn < runs.size(); ++turn) {
      const size_t i = (turn + static_cast<size_t>(round)) % runs.size();
      const double before = Now();
      runs[i]();
      result[i].Add(Now() - before);
    }
  }
  return result;
}

}  // namespace collage
