// tie_break.cc: comparing rounds.
#include "cost/estimator/tie_break.h"

#include <algorithm>

#include "cost/measure/timing.h"

namespace collage {
namespace {

/// `record` with the times of `like`, all multiplied by `factor`.
TuningRecord Scaled(TuningRecord record, const TuningRecord& like, double factor) {
  for (double TuningRecord::*time :
       {&TuningRecord::minimum, &TuningRecord::p10, &TuningRecord::p25, &TuningRecord::p50, &TuningRecord::p75,
        &TuningRecord::p90, &TuningRecord::p99, &TuningRecord::half_width}) {
    record.*time = like.*time * factor;
  }
  return record;
}

}  // namespace

std::vector<TuningRecord> BreakTiesOfRounds(const std::vector<std::vector<TuningRecord>>& rounds, double noise,
                                            double fraction) {
  const size_t num_rivals = rounds.front().size();
  const auto cost = [&](const TuningRecord& record) { return record.Quantile(fraction); };
  std::vector<double> medians;
  for (size_t i = 0; i < num_rivals; ++i) {
    Samples of_rounds;
    for (const std::vector<TuningRecord>& round : rounds) of_rounds.Add(cost(round[i]));
    medians.push_back(of_rounds.p50());
  }
  const auto best = static_cast<size_t>(std::min_element(medians.begin(), medians.end()) - medians.begin());
  std::vector<TuningRecord> settled;
  for (size_t i = 0; i < num_rivals; ++i) {
    Samples ratios;
    for (const std::vector<TuningRecord>& round : rounds) ratios.Add(cost(round[i]) / cost(round[best]));
    const bool is_dearer = ratios.minimum() > 1 && ratios.p50() > 1 + noise;
    const TuningRecord& last = rounds.back()[i];
    // Tied rivals get equal times to the last bit, in all quantiles.
    const TuningRecord& like = is_dearer ? last : rounds.back()[best];
    const double wanted = is_dearer ? medians[best] * ratios.p50() : medians[best];
    settled.push_back(Scaled(last, like, cost(like) > 0 ? wanted / cost(like) : 1));
  }
  return settled;
}

}  // namespace collage
