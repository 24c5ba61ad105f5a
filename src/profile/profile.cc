// profile.cc: runs in turns, watched and unwatched, and what they add up to.
#include "collage/profile.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include "collage/runtime/thread_pool.h"
#include "cost/machine/roofline.h"
#include "cost/measure/timing.h"
#include "profile/arena_map.h"
#include "profile/counters.h"
#include "profile/process_memory.h"
#include "profile/profile_subject.h"
#include "profile/recorder.h"
#include "profile/step_sums.h"
#include "profile/timeline.h"
#include "support/machine.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

constexpr int kFewestRounds = 7;
constexpr int kMostRounds = 300;  // all are kept until the end
constexpr int kColdRuns = 5;

RunSeconds PercentilesOf(const Samples& samples) {
  return {samples.Quantile(0.1), samples.p50(), samples.Quantile(0.9)};
}

/// The samples of each step, by its number; a step that a run does not have has no sample of it.
using SamplesBySteps = std::map<int, Samples>;

double LengthOf(const RecordedRun& run) { return std::chrono::duration<double>(run.end - run.begin).count(); }

class Profiler {
 public:
  Profiler(RunSubject& subject, const ProfileOptions& options)
      : subject_(subject), options_(options), numbers_(subject) {}

  Profile Run() {
    profile_.machine = ThisMachine().cpu;
    profile_.num_threads = subject_.num_threads();
    RunFirst();
    RunInTurns();
    DescribeMemory();  // before what follows takes memory of its own
    if (options_.evicts) RunCold();
    if (options_.finds_roof) FindRoof();
    profile_.steps = std::move(numbers_.profiles());
    return std::move(profile_);
  }

 private:
  StepProfile& Step(int number) { return numbers_.profiles()[static_cast<size_t>(number)]; }

  /// The first run, which may pack weights, and those in which a program plans what it repeats.
  void RunFirst() {
    Recorder recorder;
    recorder.Record(subject_);
    const RecordedRun first = recorder.Take();
    profile_.first_run_seconds = LengthOf(first);
    subject_.Run();
    subject_.Run();
    work_ = WorkBySteps(subject_, numbers_);
    for (const auto& [step, work] : work_) {
      if (!work) continue;
      Step(step).products = work->products;
      Step(step).bytes = work->constant_bytes + work->boundary_bytes;
      Step(step).weight_bytes = work->constant_bytes;
    }
    for (const auto& [step, seconds] : SecondsBySteps(first, numbers_)) Step(step).first_seconds = seconds;
  }

  void RunInTurns() {
    Recorder recorder;
    const std::unique_ptr<Counters> counters = options_.counts ? std::make_unique<Counters>() : nullptr;
    std::optional<CountRecorder> counting;
    std::vector<std::function<void()>> runs{[this] { subject_.Run(); }, [&] { recorder.Record(subject_); }};
    if (counters) {
      counting.emplace(*counters);
      runs.emplace_back([&] {
        counting->Clear();
        subject_.Run(*counting);
      });
    }
    const double seconds = TimeInterleaved(std::span(runs).first(1), 3)[0].p50();
    const bool settle = seconds < kSettleBelowSeconds;
    const double round = std::max(static_cast<double>(runs.size()) * (settle ? 2 : 1) * seconds, 1e-7);
    const double wanted = std::min(options_.seconds / round, double{kMostRounds});
    const int rounds = std::clamp(static_cast<int>(wanted), kFewestRounds, kMostRounds);
    std::vector<RecordedRun> recorded;
    std::vector<std::vector<CountRecorder::Event>> counted;
    const auto keep = [&] {
      recorded.push_back(recorder.Take());
      if (counting) counted.push_back(counting->events());
    };
    const std::vector<Samples> samples = TimeInterleaved(runs, rounds, settle, [&](int number) {
      if (number > 0) keep();
    });
    keep();
    profile_.runs = rounds;
    profile_.seconds = PercentilesOf(samples[0]);
    profile_.timed = PercentilesOf(samples[1]);
    profile_.overhead = profile_.timed.p50 / profile_.seconds.p50 - 1;
    AddTimes(recorded);
    if (counters) AddCounts(*counters, counted);
  }

  void AddTimes(const std::vector<RecordedRun>& runs) {
    SamplesBySteps samples;
    Samples between;
    for (const RecordedRun& run : runs) {
      double rest = LengthOf(run);
      for (const auto& [step, seconds] : SecondsBySteps(run, numbers_)) {
        samples[step].Add(seconds);
        rest -= seconds;
      }
      between.Add(rest);
    }
    profile_.between_steps = between.p50();
    double all = 0;
    for (const auto& [step, of] : samples) all += of.p50();
    for (const auto& [step, of] : samples) {
      Step(step).seconds = PercentilesOf(of);
      Step(step).share = all > 0 ? of.p50() / all : 0;
    }
    profile_.timeline = TimelineOf(MedianRun(runs), numbers_);
    for (size_t i = 0; i < numbers_.profiles().size(); ++i) {
      Step(static_cast<int>(i)).thread_seconds = ThreadSeconds(profile_.timeline, static_cast<int>(i));
    }
  }

  void AddCounts(const Counters& counters, const std::vector<std::vector<CountRecorder::Event>>& runs) {
    for (size_t row = 0; row < counters.rows().size(); ++row) {
      const Counters::Row& counter = counters.rows()[row];
      profile_.counters.push_back({counter.name, counter.reason, std::nullopt});
      if (!counter.reason.empty()) continue;
      Samples all;
      SamplesBySteps by_step;
      for (const std::vector<CountRecorder::Event>& run : runs) {
        std::map<int, double> sums;
        double total = 0;
        for (const CountRecorder::Event& event : run) {
          const std::optional<int> step = numbers_.Find(event.step);
          if (step) sums[*step] += event.counts[row];
          total += event.counts[row];
        }
        for (const auto& [step, sum] : sums) by_step[step].Add(sum);
        all.Add(total);
      }
      profile_.counters.back().per_run = all.p50();
      for (const auto& [step, samples] : by_step) Step(step).counters[counter.name] = samples.p50();
    }
  }

  void RunCold() {
    Recorder recorder;
    Samples all;
    SamplesBySteps by_step;
    for (int run = 0; run < kColdRuns; ++run) {
      EvictCaches(CacheLevel::kMemory);
      recorder.Record(subject_);
      const RecordedRun cold = recorder.Take();
      all.Add(LengthOf(cold));
      for (const auto& [step, seconds] : SecondsBySteps(cold, numbers_)) by_step[step].Add(seconds);
    }
    profile_.cold_seconds = all.p50();
    for (const auto& [step, samples] : by_step) Step(step).cold_seconds = samples.p50();
  }

  /// The cache level of operands that only one step of a run reads.
  CacheLevel OperandsLevel() const {
    double bytes = 0;
    for (const auto& [step, work] : work_) {
      if (work) bytes += work->constant_bytes + work->boundary_bytes;
    }
    return LevelFor(static_cast<int64_t>(bytes));
  }

  void FindRoof() {
    const MachineRates rates{MeasureMultiplyAddRate(),
                             {MeasureReadRate(CacheLevel::kNear), MeasureReadRate(CacheLevel::kShared),
                              MeasureReadRate(CacheLevel::kMemory)}};
    profile_.roof = RoofProfile{rates.multiply_adds, rates.bytes[0], rates.bytes[1], rates.bytes[2]};
    const CacheLevel operands = OperandsLevel();
    for (const auto& [step, work] : work_) {
      if (!work) continue;
      StepProfile& of = Step(step);
      of.roof_seconds = RooflineSeconds(*work, rates, profile_.num_threads, operands);
      const double moving = MovingSeconds(*work, rates, profile_.num_threads, operands);
      of.bound = *of.roof_seconds > moving ? "arithmetic" : "memory";
    }
  }

  void DescribeMemory() {
    std::vector<Tensor> constants = subject_.other_constants();
    for (const NamedPlan& plan : subject_.plans()) {
      for (ArenaMap& arena : ArenasOf(plan)) profile_.arenas.push_back(std::move(arena));
      constants.insert(constants.end(), plan.plan->constants.begin(), plan.plan->constants.end());
    }
    std::map<const void*, size_t> by_place;
    for (const Tensor& constant : constants) by_place[constant.raw()] = constant.size_bytes();
    for (const auto& [place, bytes] : by_place) profile_.memory.weight_bytes += static_cast<int64_t>(bytes);
    for (ArenaMap& arena : subject_.other_arenas()) profile_.arenas.push_back(std::move(arena));
    profile_.memory.code_bytes = subject_.code_bytes();
    profile_.memory.peak_bytes = PeakBytes();
    profile_.memory.resident_bytes = ResidentBytes();
  }

  RunSubject& subject_;
  const ProfileOptions& options_;
  StepNumbers numbers_;
  std::map<int, std::optional<Work>> work_;
  Profile profile_;
};

}  // namespace

Profile ProfileSubject(RunSubject& subject, const ProfileOptions& options) { return Profiler(subject, options).Run(); }

Profile ProfileExecutable(const Executable& executable, const RunInputs& inputs, const ProfileOptions& options) {
  return ProfileSubject(*MakeSubject(executable, inputs), options);
}

Profile ProfileProgram(const vm::Executable& program, const RunInputs& inputs, const ProfileOptions& options) {
  return ProfileSubject(*MakeSubject(program, inputs, ""), options);
}

Profile ProfileFile(const std::string& file, const RunInputs& inputs, const ProfileOptions& options) {
  std::unique_ptr<RunSubject> subject;
  const double seconds = SecondsOf([&] { subject = LoadSubject(file, inputs); });
  Profile profile = ProfileSubject(*subject, options);
  profile.executable = file;
  profile.load_seconds = seconds;
  return profile;
}

}  // namespace collage
