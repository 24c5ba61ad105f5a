// bounds.cc: shares of costs, and cuts.
#include "search/bounds.h"

#include <algorithm>
#include <limits>
#include <map>

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// So that rounding in the sums never makes a bound greater than what it bounds.
constexpr double kSafety = 1 - 1e-9;
constexpr int kRounds = 4;

}  // namespace

RemainingBound::RemainingBound(const CoverProblem& problem, const CostBook& book, CoverCosts& costs) {
  const size_t size = problem.num_positions;
  IndexedVector<Position, double> weights(size, 1);
  double best = -1;
  for (int round = 0; round < kRounds; ++round) {
    IndexedVector<Position, double> shares(size, kInfinity);
    for (VariantIndex v : problem.variants.indices()) {
      if (!book.CanRun(v)) continue;
      const std::vector<Position>& covers = problem.variants[v].covers;
      const double seconds = book.Seconds(v) + costs.Transition(v);
      double weight = 0;
      for (Position position : covers) weight += weights[position];
      for (Position position : covers) {
        const double part = weight > 0 ? weights[position] / weight : 1 / static_cast<double>(covers.size());
        shares[position] = std::min(shares[position], seconds * part);
      }
    }
    double sum = 0;
    for (double& share : shares) {
      if (share == kInfinity) share = 0;  // nothing covers it: there is no cover at all
      share *= kSafety;
      sum += share;
    }
    weights = shares;
    if (sum <= best) break;
    best = sum;
    shares_ = std::move(shares);
  }
  sums_ = IndexedVector<Position, double>(size + 1);
  for (Position position = problem.end(); position > Position(0); --position) {
    sums_[position - 1] = sums_[position] + shares_[position - 1];
  }
}

void RemainingBound::Refine(SearchSpace& space, const CostBook& book, CoverCosts& costs, size_t max_states) {
  // Keeps the cheapest of variants that cover the same.
  const CoverProblem& problem = space.problem();
  std::map<std::vector<Position>, VariantIndex> cheapest;
  IndexedVector<VariantIndex, double> seconds;
  for (VariantIndex v : problem.variants.indices()) {
    seconds.push_back(book.Seconds(v) + costs.Transition(v));
    if (!book.CanRun(v) || problem.variants[v].covers.empty()) continue;
    VariantIndex& best = cheapest.emplace(problem.variants[v].covers, v).first->second;
    if (seconds.back() < seconds[best]) best = v;
  }
  IndexedVector<Position, std::vector<VariantIndex>> starting_at(problem.num_positions);
  for (const auto& [covers, v] : cheapest) starting_at[covers.front()].push_back(v);

  // All sets that can be covered, in the order of dataflow; then what is left costs, from behind.
  const Position end = problem.end();
  refined_ = IndexedVector<Position, CoveredSets>(problem.num_positions + 1);
  const auto at = [&](Position next) -> CoveredSets& { return refined_[next]; };
  at(Position(0)).Add(0);
  size_t num_sets = 1;
  for (Position position : problem.positions()) {
    for (size_t i = 0; i < at(position).beyond.size(); ++i) {
      for (VariantIndex v : starting_at[position]) {
        const std::optional<SearchState> to = space.Cover({position, at(position).beyond[i], 0}, v);
        if (to && at(to->next).Add(to->beyond)) ++num_sets;
      }
    }
    if (num_sets > max_states) return refined_.clear();
  }
  for (double& least : at(end).seconds) least = 0;
  for (Position position = end; position > Position(0);) {
    --position;
    CoveredSets& sets = at(position);
    for (size_t i = 0; i < sets.beyond.size(); ++i) {
      double& least = sets.seconds[i];
      for (VariantIndex v : starting_at[position]) {
        const std::optional<SearchState> to = space.Cover({position, sets.beyond[i], 0}, v);
        if (!to) continue;
        const CoveredSets& after = at(to->next);
        least = std::min(least, seconds[v] + after.seconds[after.NumberOf(to->beyond)]);
      }
    }
  }
  is_refined_ = true;
}

double RemainingBound::SharesOf(const SearchState& state, const SearchSpace& space) {
  const PositionLists& lists = space.lists();
  if (of_list_.empty()) of_list_.push_back(0);
  for (auto list = static_cast<int>(of_list_.size()); list < static_cast<int>(lists.size()); ++list) {
    of_list_.push_back(of_list_[lists.Rest(list)] + shares_[lists.First(list)]);
  }
  const double rest = sums_[state.next] - of_list_[state.beyond];
  return std::max(0.0, rest * kSafety);
}

double RemainingBound::Seconds(const SearchState& state, const SearchSpace& space) {
  if (!is_refined_) return SharesOf(state, space);
  const CoveredSets& sets = refined_[state.next];
  const int number = sets.NumberOf(state.beyond);
  return number < 0 ? kInfinity : sets.seconds[number] * kSafety;
}

int RemainingBound::CoveredSets::NumberOf(int list) const {
  return numbers.Find(static_cast<uint64_t>(list), [&](int i) { return beyond[i] == list; });
}

bool RemainingBound::CoveredSets::Add(int list) {
  const auto is_equal = [&](int i) { return beyond[i] == list; };
  const bool is_new = numbers.Emplace(static_cast<uint64_t>(list), static_cast<int>(beyond.size()), is_equal).second;
  if (!is_new) return false;
  beyond.push_back(list);
  seconds.push_back(std::numeric_limits<double>::infinity());
  return true;
}

std::vector<Position> CutPositions(const CoverProblem& problem, const CostBook& book) {
  // How many reach across each position: +1 behind the first position of each, -1 behind the last.
  IndexedVector<Position, int> across(problem.num_positions + 2);
  const auto add = [&](Position first, Position last) {
    ++across[first + 1];
    --across[last + 1];
  };
  for (VariantIndex v : problem.variants.indices()) {
    const CoverVariant& variant = problem.variants[v];
    if (variant.covers.empty() || !book.CanRun(v)) continue;
    add(variant.covers.front(), variant.covers.back());
    if (!variant.members.empty()) add(Position(0), problem.end());  // may be remembered for its order
  }
  for (const auto& [_, value] : problem.values) {
    if (value.readers.empty()) continue;
    add(std::min(value.maker, value.readers.front()), std::max(value.maker, value.readers.back()));
  }
  std::vector<Position> cuts;
  int num_across = 0;
  for (Position position; position <= problem.end(); ++position) {
    num_across += across[position];
    if (num_across == 0 || position == Position(0) || position == problem.end()) cuts.push_back(position);
  }
  return cuts;
}

}  // namespace collage
