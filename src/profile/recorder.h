// recorder.h: notes when each step of runs begins and ends, and when the pool's threads work in it.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "collage/runtime/run_observer.h"
#include "profile/counters.h"
#include "profile/subject.h"
#include "runtime/threads/team_watch.h"

namespace collage {

/// A run, as it was recorded.
struct RecordedRun {
  using Time = std::chrono::steady_clock::time_point;
  struct Event {
    RunStep step;
    Time begin;
    Time end;
    size_t first_share = 0;  ///< its place in `shares`; those of the next event are others
  };
  Time begin;
  Time end;
  std::vector<Event> events;
  std::vector<TeamShare> shares;  ///< in all parallel regions that the run began
};

/// Records one run at a time.
class Recorder : public RunObserver {
 public:
  /// Runs `subject` and records that; forgets what was recorded before, but not how much room it took.
  void Record(RunSubject& subject);
  /// Hands over the run that was recorded last.
  RecordedRun Take();

  void Begin(const RunStep& step, std::span<const Tensor> inputs) override;
  void End() override { run_.events.back().end = std::chrono::steady_clock::now(); }

 private:
  RecordedRun run_;
};

/// Calls `look` with each call of a step in a run, before it begins.
class StepLister : public RunObserver {
 public:
  using Look = std::function<void(const RunStep& step, std::span<const Tensor> inputs)>;
  explicit StepLister(Look look) : look_(std::move(look)) {}
  void Begin(const RunStep& step, std::span<const Tensor> inputs) override { look_(step, inputs); }
  void End() override {}

 private:
  Look look_;
};

/// Reads counters around each call of a step. Counts that reading itself adds, found with steps that do nothing, are
/// taken off.
class CountRecorder : public RunObserver {
 public:
  struct Event {
    RunStep step;
    std::vector<double> counts;  ///< during the call, in the order of the counters
  };
  explicit CountRecorder(const Counters& counters);

  void Clear() { events_.clear(); }
  const std::vector<Event>& events() const { return events_; }

  void Begin(const RunStep& step, std::span<const Tensor> inputs) override;
  void End() override;

 private:
  const Counters& counters_;
  std::vector<double> before_, after_;
  std::vector<double> of_reading_;  ///< counts of a step that does nothing
  std::vector<Event> events_;
};

}  // namespace collage
