// step_sums.h: the steps of a run, numbered as they come, and what they add up to in each run.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "collage/profile.h"
#include "cost/measure/timing.h"
#include "profile/recorder.h"
#include "profile/subject.h"

namespace collage {

/// Numbers steps in the order in which they are added.
class StepNumbers {
 public:
  explicit StepNumbers(const RunSubject& subject) : subject_(subject) {}

  /// The number of `step`, which is described if it is new.
  int Add(const RunStep& step);
  /// The number of a step that was added.
  std::optional<int> Find(const RunStep& step) const;
  /// All so far.
  std::vector<StepProfile>& profiles() { return profiles_; }

 private:
  const RunSubject& subject_;
  std::map<RunStep, int> numbers_;
  std::vector<StepProfile> profiles_;
};

/// The seconds of each step in a recorded run, all its calls together, by the step's number. Steps without a number are
/// left out: the first run of a program has some that it does not repeat.
std::map<int, double> SecondsBySteps(const RecordedRun& run, const StepNumbers& numbers);

/// Numbers the steps of a run. Returns the work of all calls of each; nothing for steps that have a call of unknown
/// work.
std::map<int, std::optional<Work>> WorkBySteps(RunSubject& subject, StepNumbers& numbers);

}  // namespace collage
