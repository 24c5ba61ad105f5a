// schedule_tuning.h: the search for better schedules of partitions by the clock, within a budget.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "cost/estimator/estimator.h"

namespace collage {

/// A partition whose schedules may be tried.
struct ScheduleTask {
  CostQuery query;
  TuningRecord record;  ///< its cost and schedule; ok
  /// Whether a cover with it can still be the best, if all partitions take no longer than their bounds.
  bool can_win = false;
  /// Seconds that the best cover may become faster by, if this partition alone takes no longer than its bound.
  double gain = 0;
};

/// When to end. At least one of the first two is set.
struct ScheduleLimits {
  double seconds = 0;  ///< 0 = no limit
  int64_t trials = 0;  ///< known ones do not count; 0 = no limit
  std::function<bool()> should_stop = {};
};

/// Tries `schedules` of a task's partition. The fastest, if it is faster than the task's record by more than noise, is
/// measured once more in turn with it, and the record becomes that of the faster one. `may_go_on` is asked before each
/// unknown schedule. False if it ended before all were tried.
bool TryNear(CostEstimator& estimator, ScheduleTask& task, const std::vector<std::string>& schedules,
             const std::function<bool()>& may_go_on);

/// Hill climbing, one partition's step at a time: all schedules near its best one are tried, and the fastest, if it is
/// faster by more than noise, is measured once more in turn with the best so far. The next step is that of the
/// partition with the greatest gain by the number of steps that it had, so that none takes all of the budget. After
/// each that was faster, `revalue` says anew who can win, and how much: what cannot is tried no further. Ends when
/// nothing that can win has a faster neighbour, or with the budget. Sets the records of `tasks`.
///
/// The choice depends on the estimator's answers alone: with everything in the database, nothing is measured and the
/// choice is the same. The report's `gain` is left to the caller.
TuningReport TuneSchedules(CostEstimator& estimator, std::vector<ScheduleTask>& tasks, const ScheduleLimits& limits,
                           const std::function<void(std::vector<ScheduleTask>& tasks)>& revalue);

}  // namespace collage
