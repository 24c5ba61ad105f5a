// goal_problem.cc: bounds on the cost of covers with a variant, by all others' best schedules and by the present ones.
#include "driver/covers/goal_problem.h"

#include <algorithm>

#include "search/least_seconds_with.h"
#include "search/renumbered_costs.h"

namespace collage {
namespace {

/// Costs of a selection of variants, of which none takes more than its best schedule may.
class LeastCosts : public RenumberedCosts {
 public:
  LeastCosts(Partitioner& all, const OriginalVariants& original)
      : RenumberedCosts(all, original), partitioner_(all), original_(original) {}
  double LowerBound(VariantIndex variant) override { return partitioner_.LeastOf(original_[variant]); }

 private:
  Partitioner& partitioner_;
  const OriginalVariants& original_;
};

}  // namespace

GoalProblem::GoalProblem(Partitioner& partitioner, const TuningGoal& goal, double noise)
    : partitioner_(partitioner), goal_(goal), noise_(noise) {
  const Candidates& candidates = partitioner.candidates();
  for (const VariantIndex v : candidates.variants().indices()) {
    if (!goal.allowed(candidates.variant(v).candidate)) continue;
    original_.push_back(v);
    costs_.push_back(partitioner.LowerBound(v));
  }
  problem_ = partitioner.Problem().Of(original_);
}

std::vector<std::pair<VariantIndex, double>> GoalProblem::Gains() {
  FindBetter();
  const double seconds = partitioner_.SecondsOf(goal_.cover);
  const auto own = [&](VariantIndex v) { return partitioner_.LeastOf(original_[v]); };
  LeastCosts least(partitioner_, original_);
  RenumberedCosts now(partitioner_, original_);
  const IndexedVector<VariantIndex, double> with_all = LeastSecondsWith(problem_, least, own);
  const IndexedVector<VariantIndex, double> alone = LeastSecondsWith(problem_, now, own);
  std::vector<std::pair<VariantIndex, double>> gains;
  for (const VariantIndex v : problem_.variants.indices()) {
    if (with_all[v] < seconds) gains.emplace_back(original_[v], std::max(0.0, seconds - alone[v]));
  }
  return gains;
}

/// Searches again if a candidate outside of the cover to beat takes less now. One inside only makes it harder to beat.
void GoalProblem::FindBetter() {
  std::vector<int> in_cover;
  for (const VariantIndex v : goal_.cover.variants) in_cover.push_back(partitioner_.ClassOf(v));
  bool is_stale = false;
  for (const VariantIndex v : problem_.variants.indices()) {
    const double seconds = partitioner_.LowerBound(original_[v]);
    const bool is_outside = std::ranges::find(in_cover, partitioner_.ClassOf(original_[v])) == in_cover.end();
    is_stale = is_stale || (is_outside && seconds < costs_[v]);
    costs_[v] = seconds;
  }
  if (!is_stale) return;
  const SearchResult found = partitioner_.Search(goal_.allowed, {.tolerance = noise_});
  if (found.covers.empty()) return;
  if (partitioner_.SecondsOf(found.covers[0]) < partitioner_.SecondsOf(goal_.cover)) goal_.cover = found.covers[0];
}

}  // namespace collage
