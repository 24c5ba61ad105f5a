// recorder.cc: the clock and the counters around each step.
#include "profile/recorder.h"

#include <algorithm>
#include <utility>

#include "cost/measure/timing.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

/// While it lives, the pool's threads are watched.
class Watching {
 public:
  explicit Watching(std::vector<TeamShare>& shares) { WatchTeams(&shares); }
  ~Watching() { WatchTeams(nullptr); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
};

}  // namespace

void Recorder::Record(RunSubject& subject) {
  run_.events.clear();
  run_.shares.clear();
  const Watching watching(run_.shares);
  run_.begin = Clock::now();
  subject.Run(*this);
  run_.end = Clock::now();
}

RecordedRun Recorder::Take() {
  RecordedRun next;
  next.events.reserve(run_.events.size());
  next.shares.reserve(run_.shares.size());
  return std::exchange(run_, std::move(next));
}

void Recorder::Begin(const RunStep& step, std::span<const Tensor>) {
  run_.events.push_back({step, {}, {}, run_.shares.size()});
  run_.events.back().begin = Clock::now();
}

CountRecorder::CountRecorder(const Counters& counters)
    : counters_(counters),
      before_(counters.rows().size()),
      after_(counters.rows().size()),
      of_reading_(counters.rows().size()) {
  constexpr int kSteps = 101;
  std::vector<Samples> samples(of_reading_.size());
  for (int step = 0; step < kSteps; ++step) {
    Begin({}, {});
    End();
    for (size_t i = 0; i < samples.size(); ++i) samples[i].Add(events_.back().counts[i]);
  }
  for (size_t i = 0; i < samples.size(); ++i) of_reading_[i] = samples[i].p50();
  Clear();
}

void CountRecorder::Begin(const RunStep& step, std::span<const Tensor>) {
  events_.push_back({step, {}});
  counters_.Read(before_);
}

void CountRecorder::End() {
  counters_.Read(after_);
  std::vector<double>& counts = events_.back().counts;
  for (size_t i = 0; i < after_.size(); ++i) counts.push_back(std::max(after_[i] - before_[i] - of_reading_[i], 0.0));
}

}  // namespace collage
