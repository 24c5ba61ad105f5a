// play_off_worker.cc: builds contenders one by one, times those that are right, keeps the winner's executable.
#include "driver/play_off/play_off_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/measure/input_toggle.h"
#include "cost/measure/timing_lock.h"
#include "driver/explanation/describe_graph.h"
#include "driver/play_off/partition_trials.h"
#include "driver/play_off/ranking.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

// A stage goes on in parts, so that it ends once it is clear: mostly after the first one.
constexpr int kParts = 6;
// Rounds that fit in here are timed under one lock.
constexpr double kLockedSeconds = 0.05;
// The part of a stage's time that may be spent on waiting for the lock.
constexpr double kPatienceShare = 0.25;

/// Holds the timing lock for some rounds and then lets others have their turn.
class RoundLock {
 public:
  /// Waits for `patience` seconds in all: then what others do is borne.
  RoundLock(int rounds, double patience) : rounds_(rounds), patience_(patience) {}
  void BeginRound(int round) {
    if (round % rounds_ != 0) return;
    lock_.reset();
    const std::chrono::duration<double> wait(std::max(patience_, 0.0));
    patience_ -= SecondsOf(
        [&] { lock_.emplace(TimingLock::Mode::kAlone, std::chrono::duration_cast<std::chrono::milliseconds>(wait)); });
  }

 private:
  int rounds_;
  double patience_;
  std::optional<TimingLock> lock_;
};

std::map<std::string, int> CountPartitions(const ExecutionPlan& plan) {
  std::map<std::string, int> counts;
  for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) ++counts[kernel.toolchain];
  return counts;
}

std::vector<double> RoundsOf(const Samples& samples) {
  constexpr int kDigits = 4;
  std::vector<double> rounds;
  for (const double sample : samples.values()) rounds.push_back(Rounded(sample, kDigits));
  return rounds;
}

}  // namespace

PlayOffWorker::PlayOffWorker(const IRModule& original, const std::vector<ContenderModule>& modules,
                             const PlayOffOptions& options)
    : original_(original),
      modules_(modules),
      options_(options),
      cache_(ToolchainRegistry::Global(), options.compiled) {}

std::string PlayOffWorker::Answer(const std::string& text, const SendProgress& progress) {
  const auto request = FromJsonText<PlayOffRequest>(text);
  alive_.emplace(progress);
  cache_.OnCompile([this] { alive_->SayAgain(); });
  SetNumThreads(options_.num_threads);
  if (request.kind == PlayOffRequest::Kind::kSerialise) {
    return ToJsonText(Serialise(request.contenders.at(0), request.file));
  }
  return ToJsonText(Compare(request));
}

PlayOffAnswer PlayOffWorker::Compare(const PlayOffRequest& request) {
  seconds_ = {};
  const bool runs = request.kind != PlayOffRequest::Kind::kBuild;
  if (runs) options_.check->OnProgress([this] { alive_->SayAgain(); });
  const bool is_timed = request.kind == PlayOffRequest::Kind::kTime;
  std::vector<Built> built;
  for (const int contender : request.contenders) {
    Tell({.kind = PlayOffNews::Kind::kBuild, .contender = contender});
    built.push_back(runs ? Build(contender, is_timed) : BuildOnly(contender));
  }
  if (is_timed) Time(built);
  PlayOffAnswer answer;
  if (const Built* best = runs ? FindBest(built, is_timed) : FirstOf(built)) {
    answer.winner = winner_ = best->contender;
    winners_executable_ = best->executable;
  }
  for (const Built& one : built) answer.contenders.push_back({one.contender, one.found});
  answer.seconds = seconds_;
  return answer;
}

/// The first in the ranking; null if all failed.
PlayOffWorker::Built* PlayOffWorker::FirstOf(std::vector<Built>& built) {
  std::vector<Contender> found;
  for (const Built& one : built) found.push_back(one.found);
  const std::vector<size_t> ranked = Ranked(found);
  return ranked.empty() ? nullptr : &built[ranked.front()];
}

/// The first whose partitions have no fault either. A known ranking had them tried when it was found.
PlayOffWorker::Built* PlayOffWorker::FindBest(std::vector<Built>& built, bool is_new) {
  for (;;) {
    Built* best = FirstOf(built);
    if (best == nullptr) return nullptr;
    const Stopwatch stopwatch(seconds_.check);
    if (best->instance != nullptr) best->found.failure = CheckAgain(*best);
    if (!best->found.failure.empty()) continue;
    if (is_new) best->found.failure = TryPartitions(best->contender);
    if (best->found.failure.empty()) return best;
  }
}

std::string PlayOffWorker::TryPartitions(int contender) {
  if (!options_.tries_partitions) return "";
  const auto on_trial = [&] { Tell({.kind = PlayOffNews::Kind::kBuild, .contender = contender}); };
  const IRModule& module = modules_[static_cast<size_t>(contender)].module;
  return FindFaultInPartitions(module, options_.num_threads, cache_, options_.compiled, on_trial);
}

/// Names the partition that makes a contender wrong, if one is wrong by itself.
void PlayOffWorker::Blame(Built& built) {
  const std::string fault = TryPartitions(built.contender);
  if (!fault.empty()) built.found.failure = fmt::format("{}; the whole model: {}", fault, built.found.failure);
}

/// A child that took the place of the one that built the winner builds it again.
SerialiseAnswer PlayOffWorker::Serialise(int contender, const std::filesystem::path& file) {
  alive_->Say(ToJsonText(PlayOffNews{.kind = PlayOffNews::Kind::kBuild, .contender = contender}));
  try {
    Contender ignored;
    if (winner_ != contender) winners_executable_ = MakeExecutable(contender, ignored);
    winners_executable_->Save(file);
    if (options_.runs) return {CheckFile(file)};
  } catch (const Error& error) {
    return {error.message()};
  }
  return {};
}

/// A contender that was timed may be wrong after so many runs.
std::string PlayOffWorker::CheckAgain(Built& built) const {
  try {
    const std::string difference = options_.check->Check(*built.instance, built.found.max_error);
    return difference.empty() ? "" : difference + ", after it was timed";
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Checks the executable that is loaded from a file: its kernels are loaded anew, its constants lie in the file.
std::string PlayOffWorker::CheckFile(const std::filesystem::path& file) const {
  ExecutionInstance instance(Executable::Load(file), /*in_place=*/true);
  double ignored = 0;
  const std::string difference = options_.check->Check(instance, ignored);
  return difference.empty() ? "" : "the executable is wrong when it is loaded from its file: " + difference;
}

PlayOffWorker::Built PlayOffWorker::Build(int contender, bool is_timed) {
  Built built;
  built.contender = contender;
  try {
    {
      const Stopwatch stopwatch(seconds_.build);
      built.executable = MakeExecutable(contender, built.found);
      built.instance = std::make_unique<ExecutionInstance>(*built.executable, /*in_place=*/!is_timed);
      options_.check->SetInputs(*built.instance);
    }
    const Stopwatch stopwatch(seconds_.check);
    built.found.failure = options_.check->Check(*built.instance, built.found.max_error);
    if (!built.found.failure.empty()) Blame(built);
  } catch (const std::exception& error) {
    built.found.failure = error.what();
  }
  if (!is_timed || !built.found.failure.empty()) built.instance.reset();
  return built;
}

PlayOffWorker::Built PlayOffWorker::BuildOnly(int contender) {
  Built built;
  built.contender = contender;
  const Stopwatch stopwatch(seconds_.build);
  try {
    built.executable = MakeExecutable(contender, built.found);
  } catch (const std::exception& error) {
    built.found.failure = error.what();
  }
  return built;
}

std::shared_ptr<Executable> PlayOffWorker::MakeExecutable(int contender, Contender& found) {
  ExecutionPlan plan = Lower(modules_[static_cast<size_t>(contender)].module, options_.num_threads, cache_);
  found.partitions = CountPartitions(plan);
  plan.metadata_json = options_.metadata_json;
  return std::make_shared<Executable>(Executable::FromPlan(std::move(plan)));
}

void PlayOffWorker::Time(std::vector<Built>& built) {
  const Stopwatch stopwatch(seconds_.timing);
  std::vector<Built*> timed;
  for (Built& one : built) {
    if (one.instance) timed.push_back(&one);
  }
  if (timed.empty()) return;
  std::vector<Samples> rounds(timed.size());
  TimeRounds(timed, options_.first_seconds, FinalistsAreClear, rounds);
  for (size_t i = 0; i < timed.size(); ++i) {
    timed[i]->found.first_relative = timed[i]->found.relative;
    timed[i]->found.first_rounds = RoundsOf(rounds[i]);
  }
  std::vector<Built*> finalists;
  std::vector<Samples> of_finalists;
  for (const size_t i : Finalists(rounds)) {
    timed[i]->found.is_finalist = true;
    finalists.push_back(timed[i]);
    of_finalists.push_back(std::move(rounds[i]));
  }
  if (RoundsSuffice(of_finalists)) return;  // a final would say the same
  of_finalists.assign(finalists.size(), {});
  TimeRounds(finalists, options_.final_seconds, RoundsSuffice, of_finalists);
  for (size_t i = 0; i < finalists.size(); ++i) finalists[i]->found.final_rounds = RoundsOf(of_finalists[i]);
}

/// Times `contenders` in turn for about `seconds`, or until `suffices` says so of the times, which come to `rounds`,
/// and by which all are compared.
void PlayOffWorker::TimeRounds(const std::vector<Built*>& contenders, double seconds, const Suffices& suffices,
                               std::vector<Samples>& rounds) {
  std::vector<std::function<void()>> runs;
  InputToggle toggle(options_.check->first_inputs());
  for (Built* one : contenders) {
    runs.emplace_back([one, &toggle] {
      toggle.Set(one->num_runs++ % 2 == 1);
      one->instance->Run();
    });
  }
  const double round_seconds = SecondsOf([&] { TimeInterleaved(runs, 2); }) / 2;
  const bool settle = round_seconds / static_cast<double>(runs.size()) < kSettleBelowSeconds;
  const double needed = std::max(settle ? 2 * round_seconds : round_seconds, 1e-6);
  const int count = std::clamp(static_cast<int>(seconds / needed), options_.min_rounds, options_.max_rounds);
  const int part = std::max(options_.min_rounds, count / kParts);
  RoundLock lock(std::max(1, static_cast<int>(kLockedSeconds / needed)), seconds * kPatienceShare);
  for (int done = 0; done < count && (done == 0 || !suffices(rounds)); done += part) {
    const auto on_round = [&](int round) {
      lock.BeginRound(done + round);
      Tell({.kind = PlayOffNews::Kind::kRound, .round = done + round, .rounds = count});
    };
    const std::vector<Samples> samples = TimeInterleaved(runs, std::min(part, count - done), settle, on_round);
    for (size_t i = 0; i < contenders.size(); ++i) {
      for (const double sample : samples[i].values()) rounds[i].Add(sample);
    }
  }
  toggle.Set(false);
  for (size_t i = 0; i < contenders.size(); ++i) {
    Contender& found = contenders[i]->found;
    for (const double sample : rounds[i].values()) contenders[i]->samples.Add(sample);
    found.relative = RelativeToRounds(rounds, i);
    found.p50 = contenders[i]->samples.p50();
    found.p90 = contenders[i]->samples.p90();
    found.minimum = contenders[i]->samples.minimum();
    found.samples = static_cast<int>(contenders[i]->samples.size());
  }
}

}  // namespace collage
