// bounds.cc: shares of costs, and cuts.
#include "search/bounds.h"

#include <algorithm>
#include <limits>

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

double RemainingBound::Seconds(const SearchState& state, const SearchSpace& space) {
  const PositionLists& lists = space.lists();
  if (of_list_.empty()) of_list_.push_back(0);
  for (auto list = static_cast<int>(of_list_.size()); list < static_cast<int>(lists.size()); ++list) {
    of_list_.push_back(of_list_[static_cast<size_t>(lists.Rest(list))] +
                       shares_[static_cast<size_t>(lists.First(list))]);
  }
  const double rest = sums_[static_cast<size_t>(state.next)] - of_list_[static_cast<size_t>(state.beyond)];
  return std::max(0.0, rest * kSafety);
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
    if (!book.CanRun(static_cast<int>(v))) continue;
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
