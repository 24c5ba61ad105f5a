// ranking.cc: by ratios within a round, since what disturbs the machine disturbs all who run in it.
#include "driver/play_off/ranking.h"

#include <algorithm>
#include <functional>
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

/// How many times as long contender `slower` takes as `faster`, round by round.
Samples RatiosOf(std::span<const Samples> rounds, size_t slower, size_t faster) {
  Samples ratios;
  for (size_t round = 0; round < rounds[slower].size(); ++round) {
    ratios.Add(rounds[slower].values()[round] / rounds[faster].values()[round]);
  }
  return ratios;
}

/// Indices by score, the least first.
std::vector<size_t> ByScore(std::span<const Samples> rounds) {
  std::vector<double> scores;
  std::vector<size_t> order;
  for (size_t i = 0; i < rounds.size(); ++i) {
    scores.push_back(RelativeToRounds(rounds, i));
    order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](size_t i) { return scores[i]; });
  return order;
}

/// Whether `holds` of how many times as long each contender takes as the fastest: the median, and its interval. False
/// if there are too few rounds for an interval.
bool HoldsForSlower(std::span<const Samples> rounds,
                    const std::function<bool(double median, const Interval& interval)>& holds) {
  const std::vector<size_t> order = ByScore(rounds);
  return std::all_of(order.begin() + 1, order.end(), [&](size_t i) {
    const Samples ratios = RatiosOf(rounds, i, order.front());
    const std::optional<Interval> interval = ratios.QuantileInterval(0.5);
    return interval && holds(ratios.p50(), *interval);
  });
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
  return HoldsForSlower(rounds, [](double, const Interval& times) {
    const bool is_on_one_side = times.low > 1 + kAsGood || times.high <= 1 + kAsGood;
    return is_on_one_side || times.high - times.low <= 2 * kAsGood;
  });
}

bool FinalistsAreClear(std::span<const Samples> rounds) {
  return HoldsForSlower(
      rounds, [](double median, const Interval& times) { return median <= kFinalMargin || times.low > kFinalMargin; });
}

std::vector<size_t> Finalists(std::span<const Samples> rounds) {
  std::vector<size_t> order = ByScore(rounds);
  std::erase_if(order, [&, fastest = order.front()](size_t i) {
    const std::optional<Interval> interval = RatiosOf(rounds, i, fastest).QuantileInterval(0.5);
    return interval && interval->low > kFinalMargin;
  });
  if (order.size() > kMaxFinalists) order.resize(kMaxFinalists);
  return order;
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
