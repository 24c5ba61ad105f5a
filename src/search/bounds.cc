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
  const auto size = static_cast<size_t>(problem.num_positions);
  std::vector<double> weights(size, 1);
  double best = -1;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> shares(size, kInfinity);
    for (size_t v = 0; v < problem.variants.size(); ++v) {
      if (!book.CanRun(static_cast<int>(v))) continue;
      const std::vector<int>& covers = problem.variants[v].covers;
      const double seconds = book.Seconds(static_cast<int>(v)) + costs.Transition(static_cast<int>(v));
      double weight = 0;
      for (int position : covers) weight += weights[static_cast<size_t>(position)];
      for (int position : covers) {
        const auto p = static_cast<size_t>(position);
        const double part = weight > 0 ? weights[p] / weight : 1 / static_cast<double>(covers.size());
        shares[p] = std::min(shares[p], seconds * part);
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
  // Of variants that cover the same, the cheapest.
  const CoverProblem& problem = space.problem();
  std::map<std::vector<int>, int> cheapest;
  std::vector<double> seconds;
  for (int v = 0; v < static_cast<int>(problem.variants.size()); ++v) {
    seconds.push_back(book.Seconds(v) + costs.Transition(v));
    if (!book.CanRun(v) || problem.variants[static_cast<size_t>(v)].covers.empty()) continue;
    int& best = cheapest.emplace(problem.variants[static_cast<size_t>(v)].covers, v).first->second;
    if (seconds.back() < seconds[static_cast<size_t>(best)]) best = v;
  }
  std::vector<std::vector<int>> starting_at(static_cast<size_t>(problem.num_positions));
  for (const auto& [covers, v] : cheapest) starting_at[static_cast<size_t>(covers.front())].push_back(v);

  // All sets that can be covered, in the order of dataflow; then what is left costs, from behind.
  std::vector<std::vector<SearchState>> at(static_cast<size_t>(problem.num_positions) + 1);
  at[0].push_back({0, 0, 0});
  refined_.clear();
  refined_[at[0][0]] = kInfinity;
  for (size_t position = 0; position + 1 < at.size(); ++position) {
    for (size_t i = 0; i < at[position].size(); ++i) {
      for (int v : starting_at[position]) {
        const std::optional<SearchState> to = space.Cover(at[position][i], v);
        if (!to || !refined_.emplace(*to, kInfinity).second) continue;
        at[static_cast<size_t>(to->next)].push_back(*to);
      }
    }
    if (refined_.size() > max_states) return refined_.clear();
  }
  for (size_t position = at.size(); position > 0; --position) {
    for (const SearchState& state : at[position - 1]) {
      double& least = refined_.at(state);
      if (position == at.size()) {
        least = 0;
        continue;
      }
      for (int v : starting_at[position - 1]) {
        const std::optional<SearchState> to = space.Cover(state, v);
        if (to) least = std::min(least, seconds[static_cast<size_t>(v)] + refined_.at(*to));
      }
    }
  }
  is_refined_ = true;
}

double RemainingBound::SharesOf(const SearchState& state, const SearchSpace& space) {
  const PositionLists& lists = space.lists();
  if (of_list_.empty()) of_list_.push_back(0);
  for (auto list = static_cast<int>(of_list_.size()); list < static_cast<int>(lists.size()); ++list) {
    of_list_.push_back(of_list_[static_cast<size_t>(lists.Rest(list))] +
                       shares_[static_cast<size_t>(lists.First(list))]);
  }
  const double rest = sums_[static_cast<size_t>(state.next)] - of_list_[static_cast<size_t>(state.beyond)];
  return std::max(0.0, rest * kSafety);
}

double RemainingBound::Seconds(const SearchState& state, const SearchSpace& space) {
  if (!is_refined_) return SharesOf(state, space);
  const auto it = refined_.find({state.next, state.beyond, 0});
  return it == refined_.end() ? kInfinity : it->second * kSafety;
}

std::vector<int> CutPositions(const CoverProblem& problem, const CostBook& book) {
  // How many reach across each position: +1 behind the first position of each, -1 behind the last.
  std::vector<int> across(static_cast<size_t>(problem.num_positions) + 2);
  const auto add = [&](int first, int last) {
    ++across[static_cast<size_t>(first) + 1];
    --across[static_cast<size_t>(last) + 1];
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
    num_across += across[static_cast<size_t>(position)];
    if (num_across == 0 || position == 0 || position == problem.num_positions) cuts.push_back(position);
  }
  return cuts;
}

}  // namespace collage
