// tune_schedules.cc: a candidate's cost is that of its best schedule (RFC 0.81, Appendix E). Searches and trials take
// turns: a search finds what is to be beaten, and trials those costs with which it may be.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collage/support/error.h"
#include "driver/compilation.h"
#include "driver/phases/cover_search_state.h"
#include "driver/precision_budget.h"

namespace collage {
namespace {

void AddRound(const TuningReport& round, TuningReport& all) {
  all.partitions = std::max(all.partitions, round.partitions);
  all.faster += round.faster;
  all.trials += round.trials;
  all.known_trials += round.known_trials;
  all.seconds += round.seconds;
  all.budget_spent = round.budget_spent;
}

}  // namespace

/// Returns the covers of the last search: of one that measured nothing, or after the budget was spent.
FoundCovers Compilation::TuneSchedules(CoverSearchState& search, FoundCovers found) {
  if (!search.estimator.TriesSchedules()) {
    throw Error(ErrorCategory::kInput, fmt::format("estimator '{}' tries no schedules", options_.estimator), "",
                "leave --tuning-budget out, or measure");
  }
  if (found.covers.empty()) return found;
  const double before = search.partitioner.SecondsOf(found.covers.front().cover);
  TuningReport tuning;
  for (bool is_over = false; !is_over;) {
    Phase("tuning");
    ScheduleLimits limits{options_.tuning_seconds, options_.tuning_trials, options_.should_stop};
    if (limits.seconds > 0) limits.seconds -= tuning.seconds;
    if (limits.trials > 0) limits.trials -= tuning.trials;
    AddRound(search.partitioner.TuneSchedules(TuningGoals(search, found), limits), tuning);
    const int64_t num_timed = search.num_timed();
    found = FindCovers(search);
    const bool has_time = (options_.tuning_seconds == 0 || tuning.seconds < options_.tuning_seconds) &&
                          (options_.tuning_trials == 0 || tuning.trials < options_.tuning_trials);
    is_over = tuning.budget_spent || !has_time || search.num_timed() == num_timed;
  }
  if (before > 0) tuning.gain = std::max(0.0, 1 - search.partitioner.SecondsOf(found.covers.front().cover) / before);
  report_.tuning = tuning;
  return found;
}

/// The best mix, and that in full precision, in case that others are off by too much. Without a search, the covers that
/// there are, each by its own partitions.
std::vector<TuningGoal> Compilation::TuningGoals(const CoverSearchState& search, const FoundCovers& found) const {
  std::vector<TuningGoal> goals;
  if (options_.partition_for.empty()) {
    goals.push_back({found.covers.front().cover, search.portfolio.IsEager()});
    const auto standard = std::ranges::find(found.covers, kStandardCover, &NamedCover::name);
    if (standard == found.covers.end()) return goals;
    goals.push_back({standard->cover,
                     [&](CandidateIndex candidate) { return !IsLower(*search.candidates.ToolchainOf(candidate)); }});
    return goals;
  }
  for (const NamedCover& one : found.covers) {
    std::set<CandidateIndex> own;
    for (const VariantIndex variant : one.cover.variants) own.insert(search.candidates.variant(variant).candidate);
    goals.push_back({one.cover, [own](CandidateIndex candidate) { return own.contains(candidate); }});
  }
  return goals;
}

}  // namespace collage
