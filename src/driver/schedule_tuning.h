// schedule_tuning.h: the search for better schedules of partitions by the clock, within a budget.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "cost/estimator/estimator.h"

namespace collage {

/// Partitions with a smaller share of a cover's time are not worth being tuned, or compared with rivals.
inline constexpr double kLeastShare = 1e-3;

/// A partition whose schedules may be tried.
struct ScheduleTask {
  CostQuery query;
  double share = 0;     ///< share of a cover's time
  TuningRecord record;  ///< its cost and schedule; ok
};

/// When to end. At least one of the first two is set.
struct ScheduleLimits {
  double seconds = 0;  ///< 0 = no limit
  int64_t trials = 0;  ///< known ones do not count; 0 = no limit
  std::function<bool()> should_stop = {};
};

/// Hill climbing, one partition's step at a time: all schedules near its best one are tried, and the fastest, if it is
/// faster by more than noise, is measured once more in turn with the best so far. The next step is that of the
/// partition with the greatest share of a cover's time by the number of steps that it had, so that none takes all of
/// the budget. Ends when no partition has a faster neighbour, or with the budget. Sets the records of `tasks`.
///
/// The choice depends on the estimator's answers alone: with everything in the database, nothing is measured and the
/// choice is the same.
TuningReport TuneSchedules(CostEstimator& estimator, std::vector<ScheduleTask>& tasks, const ScheduleLimits& limits);

}  // namespace collage
