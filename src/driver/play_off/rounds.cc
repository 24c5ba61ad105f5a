// rounds.cc: by ratios within a round, since what disturbs the machine disturbs all who run in it.
#include "driver/play_off/rounds.h"

#include <optional>

namespace collage {

double RelativeToRounds(std::span<const Samples> rounds, size_t index) {
  Samples ratios;
  for (size_t round = 0; round < rounds[index].size(); ++round) {
    double sum = 0;
    for (const Samples& one : rounds) sum += one.values()[round];
    ratios.Add(rounds[index].values()[round] * static_cast<double>(rounds.size()) / sum);
  }
  return ratios.p50();
}

bool AreToldApart(std::span<const Samples> rounds) {
  size_t fastest = 0;
  for (size_t i = 1; i < rounds.size(); ++i) {
    if (RelativeToRounds(rounds, i) < RelativeToRounds(rounds, fastest)) fastest = i;
  }
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (i == fastest) continue;
    Samples ratios;
    for (size_t round = 0; round < rounds[i].size(); ++round) {
      ratios.Add(rounds[i].values()[round] / rounds[fastest].values()[round]);
    }
    const std::optional<Interval> interval = ratios.QuantileInterval(0.5);
    if (!interval || (interval->low <= 1 + kAsGood && interval->high > 1 + kAsGood)) return false;
  }
  return true;
}

}  // namespace collage
