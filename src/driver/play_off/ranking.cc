// ranking.cc: by ratios within a round, since what disturbs the machine disturbs all who run in it.
#include "driver/play_off/ranking.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "collage/target/toolchain.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

/// The least is preferred where timings do not decide: fewer toolchains, then lesser priorities.
std::pair<size_t, int> Preference(const Contender& contender) {
  int priorities = 0;
  for (const auto& [name, _] : contender.partitions) {
    const Toolchain* toolchain = ToolchainRegistry::Global().Find(RegisteredName(name));
    priorities += toolchain == nullptr ? 0 : toolchain->priority();
  }
  return {contender.partitions.size(), priorities};
}

}  // namespace

double RelativeToRounds(std::span<const Samples> rounds, size_t index) {
  Samples ratios;
  for (size_t round = 0; round < rounds[index].size(); ++round) {
    double sum = 0;
    for (const Samples& one : rounds) sum += one.values()[round];
    ratios.Add(rounds[index].values()[round] * static_cast<double>(rounds.size()) / sum);
  }
  return ratios.p50();
}

bool RoundsSuffice(std::span<const Samples> rounds) {
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
    if (!interval) return false;
    const bool is_on_one_side = interval->low > 1 + kAsGood || interval->high <= 1 + kAsGood;
    if (!is_on_one_side && interval->high - interval->low > 2 * kAsGood) return false;
  }
  return true;
}

double SecondsBeside(const Contender& contender, const Contender& other) {
  const bool in_final = contender.is_finalist && other.is_finalist;
  return other.p50 * (in_final ? contender.relative / other.relative : contender.first_relative / other.first_relative);
}

std::vector<size_t> Ranked(std::span<const Contender> contenders) {
  std::vector<size_t> ranked;
  for (size_t i = 0; i < contenders.size(); ++i) {
    if (contenders[i].failure.empty()) ranked.push_back(i);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](size_t a, size_t b) {
    const Contender& x = contenders[a];
    const Contender& y = contenders[b];
    return x.is_finalist != y.is_finalist ? x.is_finalist : x.relative < y.relative;
  });
  if (ranked.empty()) return ranked;
  const Contender& fastest = contenders[ranked.front()];
  const auto end = std::find_if(ranked.begin(), ranked.end(), [&](size_t i) {
    return contenders[i].is_finalist != fastest.is_finalist ||
           contenders[i].relative > fastest.relative * (1 + kAsGood);
  });
  const auto preferred = std::min_element(
      ranked.begin(), end, [&](size_t a, size_t b) { return Preference(contenders[a]) < Preference(contenders[b]); });
  std::rotate(ranked.begin(), preferred, preferred + 1);
  return ranked;
}

}  // namespace collage
