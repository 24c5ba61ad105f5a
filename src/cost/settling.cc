// settling.cc: comparing rounds.
#include "cost/settling.h"

#include <algorithm>

#include "cost/timing.h"

namespace collage {
namespace {

/// `record` with its times multiplied so that the median is `p50`.
TuningRecord Scaled(TuningRecord record, double p50) {
  const double factor = record.p50 > 0 ? p50 / record.p50 : 1;
  for (double* time : {&record.minimum, &record.p10, &record.p25, &record.p50, &record.p75, &record.p90, &record.p99,
                       &record.half_width}) {
    *time *= factor;
  }
  record.p50 = p50;
  return record;
}

}  // namespace

std::vector<TuningRecord> SettleRounds(const std::vector<std::vector<TuningRecord>>& rounds, double noise) {
  const size_t num_rivals = rounds.front().size();
  std::vector<double> medians;
  for (size_t i = 0; i < num_rivals; ++i) {
    Samples of_rounds;
    for (const std::vector<TuningRecord>& round : rounds) of_rounds.Add(round[i].p50);
    medians.push_back(of_rounds.p50());
  }
  const auto best = static_cast<size_t>(std::min_element(medians.begin(), medians.end()) - medians.begin());
  std::vector<TuningRecord> settled;
  for (size_t i = 0; i < num_rivals; ++i) {
    Samples ratios;
    for (const std::vector<TuningRecord>& round : rounds) ratios.Add(round[i].p50 / round[best].p50);
    const bool is_dearer = ratios.minimum() > 1 && ratios.p50() > 1 + noise;
    settled.push_back(Scaled(rounds.back()[i], is_dearer ? medians[best] * ratios.p50() : medians[best]));
  }
  return settled;
}

}  // namespace collage
