// bounds.h: what covering the rest must cost at least.
#pragma once

#include <vector>

#include "search/cost_book.h"
#include "search/number_table.h"
#include "search/search_space.h"

namespace collage {

/// Sets that the refined bound is worked out for; some 100 bytes each.
inline constexpr size_t kMostRefined = 1'000'000;

/// First from shares: each variant's cost is shared out among the positions that it covers; a position's share is the
/// least that any variant asks of it. The shares of uncovered positions sum to no more than any way to cover them
/// costs, whatever the proportions in which costs are shared out. The proportions are improved in a few rounds: heavy
/// positions bear more.
///
/// Then, if refined, from the problem without formats and order: what the rest costs there is found for every set that
/// can be covered, and is all of the true cost but conversions.
///
/// Both are consistent: a step costs at least what the bound falls by.
class RemainingBound {
 public:
  RemainingBound(const CoverProblem& problem, const CostBook& book, CoverCosts& costs);

  /// Does nothing when more than `max_states` sets can be covered. `space` must be the same at all calls.
  void Refine(SearchSpace& space, const CostBook& book, CoverCosts& costs, size_t max_states);
  bool is_refined() const { return is_refined_; }

  /// Bounds the cost of the positions that a state has not covered; infinite if nothing covers them.
  double Seconds(const SearchState& state, const SearchSpace& space);
  /// Bounds the cost of positions in [begin, end), by shares.
  double Between(Position begin, Position end) const { return sums_[begin] - sums_[end]; }
  /// By shares only.
  double SharesOf(const SearchState& state, const SearchSpace& space);

 private:
  /// All that can be covered with one next uncovered position, and what the rest costs.
  struct CoveredSets {
    std::vector<int> beyond;
    std::vector<double> seconds;
    NumberTable numbers;

    int NumberOf(int list) const;
    /// Whether it was not there yet.
    bool Add(int list);
  };

  IndexedVector<Position, double> shares_;
  IndexedVector<Position, double> sums_;  ///< sums of the shares from a position on
  std::vector<double> of_list_;           ///< by number of a list of positions
  bool is_refined_ = false;
  IndexedVector<Position, CoveredSets> refined_;  ///< by first position that is not covered
};

/// Positions that every path passes in one state: no variant that can be run reaches across, no value that may have
/// several formats is alive there. Ascending, from 0 to `num_positions`. The parts before and behind a cut are separate
/// problems.
std::vector<Position> CutPositions(const CoverProblem& problem, const CostBook& book);

}  // namespace collage
