// goal_problem.h: which candidates could make a cover that beats the best known one, if their schedules were the best
// that there may be.
#pragma once

#include <utility>
#include <vector>

#include "driver/covers/partitioner.h"

namespace collage {

/// The problem of beating a goal's cover by candidates that it allows.
class GoalProblem {
 public:
  /// `partitioner` must outlive this. Searches tolerate `noise`, a share of a cover's cost.
  GoalProblem(Partitioner& partitioner, const TuningGoal& goal, double noise);

  /// Returns the variants that a better cover may have if all take the least that they may (Partitioner::LeastOf), each
  /// with the seconds that are gained if it alone does. The cover to beat is searched anew if one with candidates whose
  /// cost has fallen may be better.
  std::vector<std::pair<VariantIndex, double>> Gains();

 private:
  void FindBetter();

  Partitioner& partitioner_;
  TuningGoal goal_;
  double noise_;
  OriginalVariants original_;  ///< variants that the goal allows
  CoverProblem problem_;
  IndexedVector<VariantIndex, double> costs_;  ///< costs of `original_` when this was last asked
};

}  // namespace collage
