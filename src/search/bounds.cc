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
  std::vector<double> weights(size, 1);
  double best = -1;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> shares(size, kInfinity);
    for (size_t v = 0; v < problem.variants.size(); ++v) {
      if (!book.CanRun(static_cast<int>(v))) continue;
      const std::vector<int>& covers = problem.variants[v].covers;
      const double seconds = book.Seconds(static_cast<int>(v)) + costs.Transition(static_cast<int>(v));
      double weight = 0;
      for (int position : covers) weight += weights[position];
      for (int position : covers) {
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
  sums_.assign(size + 1, 0);
  for (size_t i = size; i > 0; --i) sums_[i - 1] = sums_[i] + shares_[i - 1];
}

void RemainingBound::Refine(SearchSpace& space, const CostBook& book, CoverCosts& costs, size_t max_states) {
  // Keeps the cheapest of variants that cover the same.
  const CoverProblem& problem = space.problem();
  std::map<std::vector<int>, int> cheapest;
  std::vector<double> seconds;
  for (int v = 0; v < static_cast<int>(problem.variants.size()); ++v) {
    seconds.push_back(book.Seconds(v) + costs.Transition(v));
    if (!book.CanRun(v) || problem.variants[v].covers.empty()) continue;
    int& best = cheapest.emplace(problem.variants[v].covers, v).first->second;
    if (seconds.back() < seconds[best]) best = v;
  }
  std::vector<std::vector<int>> starting_at(problem.num_positions);
  for (const auto& [covers, v] : cheapest) starting_at[covers.front()].push_back(v);

  // All sets that can be covered, in the order of dataflow; then what is left costs, from behind.
  const int end = problem.num_positions;
  refined_.assign(end + 1, {});
  const auto at = [&](int next) -> CoveredSets& { return refined_[next]; };
  at(0).Add(0);
  size_t num_sets = 1;
  for (int position = 0; position < end; ++position) {
    for (size_t i = 0; i < at(position).beyond.size(); ++i) {
      for (int v : starting_at[position]) {
        const std::optional<SearchState> to = space.Cover({position, at(position).beyond[i], 0}, v);
        if (to && at(to->next).Add(to->beyond)) ++num_sets;
      }
    }
    if (num_sets > max_states) return refined_.clear();
  }
  for (double& least : at(end).seconds) least = 0;
  for (int position = end; position-- > 0;) {
    CoveredSets& sets = at(position);
    for (size_t i = 0; i < sets.beyond.size(); ++i) {
      double& least = sets.seconds[i];
      for (int v : starting_at[position]) {
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

std::vector<int> CutPositions(const CoverProblem& problem, const CostBook& book) {
  // How many reach across each position: +1 behind the first position of each, -1 behind the last.
  std::vector<int> across(problem.num_positions + 2);
  const auto add = [&](int first, int last) {
    ++across[first + 1];
    --across[last + 1];
  };
  for (size_t v = 0; v < problem.variants.size(); ++v) {
    const CoverVariant& variant = problem.variants[v];
    if (variant.covers.empty() || !book.CanRun(static_cast<int>(v))) continue;
    add(variant.covers.front(), variant.covers.back());
    if (!variant.members.empty()) add(0, problem.num_positions);  // may be remembered for its order
  }
  for (const auto& [_, value] : problem.values) {
    if (value.readers.empty()) continue;
    add(std::min(value.maker, value.readers.front()), std::max(value.maker, value.readers.back()));
  }
  std::vector<int> cuts;
  int num_across = 0;
  for (int position = 0; position <= problem.num_positions; ++position) {
    num_across += across[position];
    if (num_across == 0 || position == 0 || position == problem.num_positions) cuts.push_back(position);
  }
  return cuts;
}

}  // namespace collage
