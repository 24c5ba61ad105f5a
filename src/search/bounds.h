// bounds.h: what covering the rest must cost at least.
#pragma once

#include <vector>

#include "search/cost_book.h"
#include "search/search_space.h"

namespace collage {

/// Each variant's cost is shared out among the positions that it covers; a position's share is the least that any
/// variant asks of it. The shares of uncovered positions sum to no more than any way to cover them costs, whatever the
/// proportions in which costs are shared out, and are never less by more than a step costs (the bound is consistent).
/// The proportions are improved in a few rounds: heavy positions bear more.
class RemainingBound {
 public:
  RemainingBound(const CoverProblem& problem, const CostBook& book, CoverCosts& costs);

  /// Of what a state has not covered. `space` must be the same at all calls.
  double Seconds(const SearchState& state, const SearchSpace& space);
  /// Of positions in [begin, end).
  double Between(int begin, int end) const {
    return sums_[static_cast<size_t>(begin)] - sums_[static_cast<size_t>(end)];
  }

 private:
  std::vector<double> shares_;   ///< by position
  std::vector<double> sums_;     ///< of the shares from a position on
  std::vector<double> of_list_;  ///< by number of a list of positions
};

/// Positions that every path passes in one state: no variant that can be run reaches across, no value that may have
/// several formats is alive there. Ascending, from 0 to `num_positions`. What is before and what is behind are problems
/// of their own.
std::vector<int> CutPositions(const CoverProblem& problem, const CostBook& book);

}  // namespace collage
