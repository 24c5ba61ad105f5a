// sweep.h: the best covers under given costs, by walking through all states in the order of dataflow.
#pragma once

#include <limits>
#include <vector>

#include "search/best_paths.h"
#include "search/bounds.h"
#include "search/number_table.h"
#include "search/search_space.h"

namespace collage {

struct SweepOptions {
  int num_covers = 1;
  /// States that cannot be on a cover of at most this cost are left out.
  double limit = std::numeric_limits<double>::infinity();
  /// At most so many states with the same next uncovered position, the most promising ones; 0 = no limit.
  int beam = 0;
};

/// One pass. Every step covers the next uncovered position, so taking the states by that position meets each after all
/// that lead to it: no queue, and what is behind is not looked at again. Costs are those in `book`, bounds among them.
class Sweep {
 public:
  /// `bound` may be null; then nothing is left out but by the beam, in which cost so far decides.
  Sweep(SearchSpace& space, const CostBook& book, RemainingBound* bound, const SweepOptions& options);

  /// Best first; fewer than asked for when there are no more.
  std::vector<Cover> Run();

  /// After Run, the cost below which there is no cover: that of the best one, or what a state that was left out may
  /// come to.
  double least_seconds() const { return least_seconds_; }

  int64_t num_states() const { return static_cast<int64_t>(states_.size()); }
  int64_t num_dropped() const { return num_dropped_; }
  const std::vector<Position>& dead_ends() const { return dead_ends_; }

 private:
  struct State {
    SearchState key;
    std::vector<int> best;  ///< paths, best first
  };

  /// States with one next uncovered position.
  struct Layer {
    std::vector<int> states;
    NumberTable numbers;
  };

  int StateAt(const SearchState& key);
  double SecondsOf(int state) const { return paths_.SecondsOf(states_[state].best[0]); }
  double Estimate(int state);
  /// Leaves of the states at a position those that are worth continuing.
  void Prune(std::vector<int>& states);
  void PruneDominated(std::vector<int>& states);
  void Expand(int state);

  SearchSpace& space_;
  const CostBook& book_;
  RemainingBound* bound_;
  SweepOptions options_;
  BestPaths paths_;
  std::vector<State> states_;
  IndexedVector<Position, Layer> at_;  ///< by next uncovered position
  std::vector<int> before_;            ///< buffer of Expand, kept to reuse its memory
  std::vector<Position> dead_ends_;
  int64_t num_dropped_ = 0;
  double least_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace collage
