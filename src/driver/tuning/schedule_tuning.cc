// schedule_tuning.cc: hill climbing over schedules.
#include "driver/tuning/schedule_tuning.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

// A trial that is faster by less is not worth measuring again: medians differ by as much from one worker to the next.
constexpr double kNoticed = 0.02;

/// The search for one partition's schedule.
struct Climb {
  ScheduleTask* task;
  int steps = 0;
  bool is_over = false;
  std::set<std::string> tried;

  double Priority() const { return task->gain / (1 + steps); }
  bool GoesOn() const { return !is_over && task->can_win; }
};

class Climber {
 public:
  Climber(CostEstimator& estimator, const ScheduleLimits& limits,
          const std::function<void(std::vector<ScheduleTask>& tasks)>& revalue)
      : estimator_(estimator),
        limits_(limits),
        revalue_(revalue),
        before_(estimator.counts()),
        started_(Clock::now()) {}

  TuningReport Run(std::vector<ScheduleTask>& tasks) {
    std::vector<Climb> climbs;
    for (ScheduleTask& task : tasks) climbs.push_back({&task, 0, false, {task.record.schedule}});
    std::vector<double> costs;
    for (const Climb& climb : climbs) costs.push_back(estimator_.CostOf(climb.task->record));
    revalue_(tasks);
    for (;;) {
      const auto next = std::max_element(climbs.begin(), climbs.end(), [](const Climb& a, const Climb& b) {
        return a.GoesOn() != b.GoesOn() ? b.GoesOn() : a.Priority() < b.Priority();
      });
      if (next == climbs.end() || !next->GoesOn()) break;
      const double before = estimator_.CostOf(next->task->record);
      if (!Step(*next)) {
        report_.budget_spent = true;
        break;
      }
      if (estimator_.CostOf(next->task->record) < before) revalue_(tasks);
    }
    for (size_t i = 0; i < climbs.size(); ++i) {
      if (climbs[i].steps > 0) ++report_.partitions;
      if (estimator_.CostOf(climbs[i].task->record) < costs[i]) ++report_.faster;
    }
    report_.trials = NumTrials();
    report_.known_trials = estimator_.counts().known_trials - before_.known_trials;
    report_.seconds = Seconds();
    return report_;
  }

 private:
  /// False when the budget was spent before all near schedules were tried.
  bool Step(Climb& climb) {
    ScheduleTask& task = *climb.task;
    std::vector<std::string> wanted = estimator_.SchedulesNear(task.query, task.record.schedule);
    std::erase_if(wanted, [&](const std::string& schedule) { return !climb.tried.insert(schedule).second; });
    const std::string before = task.record.schedule;
    const bool is_complete = TryNear(estimator_, task, wanted, [&] { return MayGoOn(); });
    ++climb.steps;
    climb.is_over = task.record.schedule == before;
    return is_complete;
  }

  double Seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  int64_t NumTrials() const { return estimator_.counts().trials - before_.trials; }
  bool MayGoOn() const {
    if (limits_.seconds > 0 && Seconds() >= limits_.seconds) return false;
    if (limits_.trials > 0 && NumTrials() >= limits_.trials) return false;
    return !limits_.should_stop || !limits_.should_stop();
  }

  CostEstimator& estimator_;
  const ScheduleLimits& limits_;
  const std::function<void(std::vector<ScheduleTask>& tasks)>& revalue_;
  EstimatorCounts before_;
  Clock::time_point started_;
  TuningReport report_;
};

}  // namespace

bool TryNear(CostEstimator& estimator, ScheduleTask& task, const std::vector<std::string>& schedules,
             const std::function<bool()>& may_go_on) {
  const std::vector<TuningRecord> records = estimator.TrySchedules(task.query, schedules, may_go_on);
  const TuningRecord* best = nullptr;
  bool is_complete = true;
  for (const TuningRecord& record : records) {
    is_complete = is_complete && !record.is_skipped;
    if (record.ok && (best == nullptr || estimator.CostOf(record) < estimator.CostOf(*best))) best = &record;
  }
  if (best != nullptr && estimator.CostOf(*best) < (1 - kNoticed) * estimator.CostOf(task.record)) {
    task.record = estimator.AdoptIfFaster(task.query, best->schedule);
  }
  return is_complete;
}

TuningReport TuneSchedules(CostEstimator& estimator, std::vector<ScheduleTask>& tasks, const ScheduleLimits& limits,
                           const std::function<void(std::vector<ScheduleTask>& tasks)>& revalue) {
  return Climber(estimator, limits, revalue).Run(tasks);
}

}  // namespace collage
