// random_cover_problem.h: small covering problems with every difficulty at once, and their costs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "search/cover_problem.h"

namespace collage::testing_covers {

/// Costs by table. Small whole numbers, so that sums are exact and ties are frequent; some infinite, some NaN.
class TableCosts : public BasicCoverCosts {
 public:
  double LowerBound(VariantIndex variant) override { return bounds[variant]; }
  double Exact(VariantIndex variant) override {
    if (!FindsOut() && !asked.contains(variant)) {
      ++num_skipped;
      return std::numeric_limits<double>::infinity();
    }
    asked.insert(variant);
    return exact[variant];
  }
  int PlaceOf(VariantIndex variant) override { return places[variant]; }
  double SwitchPenalty(int from, int to) override { return switch_penalties.at({from, to}); }
  bool has_switch_penalties() const {
    return std::any_of(switch_penalties.begin(), switch_penalties.end(),
                       [](const auto& entry) { return entry.second > 0; });
  }
  bool FindsOut() const override { return asked.size() < most_asked; }
  bool IsAtHand(VariantIndex variant) override { return at_hand.contains(variant); }
  int NumAtOnce() const override { return num_at_once; }
  void Prepare(std::span<const VariantIndex> variants) override {
    prepared.insert(prepared.end(), variants.begin(), variants.end());
  }
  double Convert(int value, Format from, Format to) override { return converts.at({value, from, to}); }
  double Transition(VariantIndex variant) override { return transitions[variant]; }

  IndexedVector<VariantIndex, double> bounds, exact, transitions;
  std::map<std::tuple<int, Format, Format>, double> converts;
  IndexedVector<VariantIndex, int> places;
  std::map<std::pair<int, int>, double> switch_penalties;  ///< (from, to) → seconds
  std::set<VariantIndex> asked;
  std::set<VariantIndex> at_hand;  ///< their bounds should be their costs
  int num_at_once = 1;
  std::vector<VariantIndex> prepared;
  size_t most_asked = std::numeric_limits<size_t>::max();  ///< there is no time to find out more
  int num_skipped = 0;                                     ///< asked for when there was no time left
};

struct RandomProblem {
  CoverProblem problem;
  TableCosts costs;
  std::vector<std::vector<int>> node_outputs;
};

/// A random graph of `num_nodes` operators; candidates that are single nodes, connected and unconnected sets, with one
/// exit and with several, none of which a path leaves and enters again; in up to three formats; by up to three
/// toolchains.
std::unique_ptr<RandomProblem> MakeRandomProblem(int num_nodes, uint32_t seed);

/// The definitions, written without regard to any search.
/// All covers that can be put in order, each ascending by first position, with what they cost; infinite ones left out.
/// False when there are more than `most`.
bool AllCovers(RandomProblem& random, size_t most, std::vector<Cover>& covers);

}  // namespace collage::testing_covers
