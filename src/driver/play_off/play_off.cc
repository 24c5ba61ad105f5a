// play_off.cc: building and timing whole covers in a worker.
#include "driver/play_off/play_off.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "collage/ir/structural.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "cost/measure/timing.h"
#include "cost/measure/timing_lock.h"
#include "driver/play_off/heats.h"
#include "driver/play_off/rounds.h"
#include "driver/play_off/whole_model_check.h"
#include "lowering/lower.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/stopwatch.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using Json = nlohmann::json;

// A play-off has a final: of contestants that first rounds put this close together, noise alone may have chosen.
constexpr double kFinalMargin = 1.03;
constexpr size_t kMaxFinalists = 4;
// How often the time of a final is spent, at most.
constexpr int kMaxFinals = 3;
// Rounds that fit in here are timed under one lock.
constexpr double kLockedSeconds = 0.05;
// Of the time of a stage, what may be spent on waiting for it.
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

/// The least is preferred where timings do not decide: fewer toolchains, then lesser priorities.
std::pair<size_t, int> Preference(const Contestant& contestant) {
  int priorities = 0;
  for (const auto& [name, _] : contestant.partitions) {
    const Toolchain* toolchain = ToolchainRegistry::Global().Find(RegisteredName(name));
    priorities += toolchain == nullptr ? 0 : toolchain->priority();
  }
  return {contestant.partitions.size(), priorities};
}

std::map<std::string, int> CountPartitions(const ExecutionPlan& plan) {
  std::map<std::string, int> counts;
  for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) ++counts[kernel.toolchain];
  return counts;
}

/// What one worker does: builds entrants one by one, then times those that were right, then writes the winner.
class PlayOffWorker {
 public:
  PlayOffWorker(const IRModule& original, const std::vector<Entrant>& entrants, const PlayOffOptions& options)
      : original_(original), entrants_(entrants), options_(options), cache_(ToolchainRegistry::Global()) {}

  /// `request`: {"entrants": [indices], "time": whether to time them or only to write the first}.
  std::string Answer(const std::string& request, const SendProgress& progress) {
    const Json json = Json::parse(request);
    alive_.emplace(progress);
    alive_->Say("reference");
    cache_.OnCompile([this] { alive_->SayAgain(); });
    seconds_ = {};
    {
      const Stopwatch stopwatch(seconds_.check);
      const TimingLock together(TimingLock::Mode::kShared);  // nothing is timed meanwhile
      SetNumThreads(AvailableProcessors());
      check_.emplace(original_.main(),
                     WholeModelCheckOptions{options_.max_error, options_.check_inputs, [this] { alive_->SayAgain(); }});
    }
    SetNumThreads(options_.num_threads);
    const bool is_timed = json.at("time").get<bool>();
    std::vector<Built> built;
    Json answer{{"contestants", Json::array()}};
    for (int index : json.at("entrants").get<std::vector<int>>()) {
      alive_->Say(fmt::format("build {}", index));
      built.push_back(Build(index, is_timed));
    }
    if (is_timed) Time(built, progress);
    std::vector<Contestant> contestants;
    for (const Built& one : built) {
      answer["contestants"].push_back(ToJson(one));
      contestants.push_back(one.contestant);
    }
    const std::vector<size_t> ranked = Ranked(contestants);
    answer["winner"] = ranked.empty() ? -1 : built[ranked.front()].index;
    if (!ranked.empty()) {
      progress("write");
      const Stopwatch stopwatch(seconds_.write);
      Built& winner = built[ranked.front()];
      try {
        if (!winner.file.valid()) winner.file = StartWriting(*winner.executable);
        winner.file.get()->Commit();
        answer["output_bytes"] = std::filesystem::file_size(options_.output);
      } catch (const Error& error) {  // no fault of any contestant
        answer["write_failure"] = error.message();
      }
    }
    answer["seconds"] = {seconds_.check, seconds_.build, seconds_.timing, seconds_.write};
    return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  struct Built {
    int index;
    Contestant contestant;
    std::shared_ptr<Executable> executable;
    std::unique_ptr<ExecutionInstance> instance;
    Samples samples;
    std::future<std::unique_ptr<AtomicFile>> file;  ///< the executable's, where it is being written
  };

  static Json ToJson(const Built& built) {
    const Contestant& c = built.contestant;
    const double max_error = std::min(c.max_error, std::numeric_limits<double>::max());  // JSON has no infinity
    return {{"index", built.index},         {"p50", c.p50},           {"p90", c.p90},
            {"minimum", c.minimum},         {"samples", c.samples},   {"max_error", max_error},
            {"partitions", c.partitions},   {"relative", c.relative}, {"first_relative", c.first_relative},
            {"is_finalist", c.is_finalist}, {"failure", c.failure}};
  }

  Built Build(int index, bool is_timed) {
    Built built{index, {}, nullptr, nullptr, {}, {}};
    try {
      MakeInstance(built, is_timed);
      // It will most likely be right.
      if (!is_timed) built.file = StartWriting(*built.executable);
      built.contestant.failure = Check(built);
    } catch (const std::exception& error) {
      built.contestant.failure = error.what();
    }
    if (!is_timed || !built.contestant.failure.empty()) built.instance.reset();
    return built;
  }

  void MakeInstance(Built& built, bool is_timed) {
    const Stopwatch stopwatch(seconds_.build);
    ExecutionPlan plan = Lower(entrants_[static_cast<size_t>(built.index)].module, options_.num_threads, cache_);
    built.contestant.partitions = CountPartitions(plan);
    plan.metadata_json = options_.metadata_json;
    built.executable = std::make_shared<Executable>(Executable::FromPlan(std::move(plan)));
    built.instance = std::make_unique<ExecutionInstance>(*built.executable, /*in_place=*/!is_timed);
    check_->SetInputs(*built.instance);
  }

  /// Writes it by another thread; it is there once the file is committed.
  std::future<std::unique_ptr<AtomicFile>> StartWriting(const Executable& executable) const {
    return std::async(std::launch::async, [executable, path = options_.output] {
      auto file = std::make_unique<AtomicFile>(path);
      executable.WriteTo(*file);
      file->Flush();
      return file;
    });
  }

  /// Empty when right.
  std::string Check(Built& built) {
    const Stopwatch stopwatch(seconds_.check);
    return check_->Check(*built.instance, built.contestant.max_error);
  }

  void Time(std::vector<Built>& built, const SendProgress& progress) {
    const Stopwatch stopwatch(seconds_.timing);
    std::vector<Built*> field;
    for (Built& one : built) {
      if (one.instance) field.push_back(&one);
    }
    if (field.empty()) return;
    std::vector<Samples> rounds(field.size());
    TimeRounds(field, options_.first_seconds, progress, rounds);
    for (Built* one : field) one->contestant.first_relative = one->contestant.relative;
    std::stable_sort(field.begin(), field.end(),
                     [](const Built* a, const Built* b) { return a->contestant.relative < b->contestant.relative; });
    const double bound = field.front()->contestant.relative * kFinalMargin;
    std::erase_if(field, [&](const Built* one) { return one->contestant.relative > bound; });
    if (field.size() > kMaxFinalists) field.resize(kMaxFinalists);
    for (Built* one : field) one->contestant.is_finalist = true;
    rounds.assign(field.size(), {});
    for (int final = 0; final < kMaxFinals && !AreToldApart(rounds); ++final) {
      TimeRounds(field, options_.final_seconds, progress, rounds);
    }
  }

  /// Times `field` in turn for about `seconds` and adds what it measures to `rounds`, by which all are compared.
  void TimeRounds(const std::vector<Built*>& field, double seconds, const SendProgress& progress,
                  std::vector<Samples>& rounds) {
    std::vector<std::function<void()>> runs;
    for (Built* one : field) runs.emplace_back([one] { one->instance->Run(); });
    const double round_seconds = SecondsOf([&] { TimeInterleaved(runs, 2); }) / 2;
    const bool settle = round_seconds / static_cast<double>(runs.size()) < kSettleBelowSeconds;
    const double needed = std::max(settle ? 2 * round_seconds : round_seconds, 1e-6);
    const int count = std::clamp(static_cast<int>(seconds / needed), options_.min_rounds, options_.max_rounds);
    RoundLock lock(std::max(1, static_cast<int>(kLockedSeconds / needed)), seconds * kPatienceShare);
    const std::vector<Samples> samples = TimeInterleaved(runs, count, settle, [&](int done) {
      lock.BeginRound(done);
      progress(fmt::format("round {} {}", done, count));
    });
    for (size_t i = 0; i < field.size(); ++i) {
      for (double sample : samples[i].values()) {
        field[i]->samples.Add(sample);
        rounds[i].Add(sample);
      }
    }
    for (size_t i = 0; i < field.size(); ++i) {
      Contestant& contestant = field[i]->contestant;
      contestant.relative = RelativeToRounds(rounds, i);
      contestant.p50 = field[i]->samples.p50();
      contestant.p90 = field[i]->samples.p90();
      contestant.minimum = field[i]->samples.minimum();
      contestant.samples = static_cast<int>(field[i]->samples.size());
    }
  }

  const IRModule& original_;
  const std::vector<Entrant>& entrants_;
  const PlayOffOptions& options_;
  PartitionCache cache_;
  std::optional<WholeModelCheck> check_;
  PlayOffSeconds seconds_;
  std::optional<SignsOfLife> alive_;  ///< of the request that is being answered
};

Contestant ContestantFrom(const Json& json, const Entrant& entrant) {
  Contestant contestant;
  contestant.name = entrant.name;
  contestant.is_single = entrant.is_single;
  contestant.is_extra = entrant.is_extra;
  contestant.estimated_seconds = entrant.estimated_seconds;
  contestant.p50 = json.at("p50");
  contestant.p90 = json.at("p90");
  contestant.minimum = json.at("minimum");
  contestant.samples = json.at("samples");
  contestant.max_error = json.at("max_error");
  contestant.partitions = json.at("partitions").get<std::map<std::string, int>>();
  contestant.relative = json.at("relative");
  contestant.first_relative = json.at("first_relative");
  contestant.is_finalist = json.at("is_finalist");
  contestant.failure = json.at("failure");
  return contestant;
}

/// Identifies the entrants, their constants by shape: the same cover of the same structure is the same entrant.
std::string EntrantDigest(const Entrant& entrant) {
  StructuralHashOptions options;
  options.constants_by_shape = true;
  return StructuralHash(entrant.module.main(), options);
}

/// One play-off, from the parent's side: what is asked of the worker and what is made of its answers.
class PlayOff {
 public:
  PlayOff(const IRModule& original, const std::vector<Entrant>& entrants, TuningDatabase& database,
          const std::string& machine, const PlayOffOptions& options, CompileProgress* progress)
      : entrants_(entrants),
        database_(database),
        machine_(machine),
        progress_(progress),
        worker_state_(original, entrants, options),
        worker_([this](const std::string& request,
                       const SendProgress& send) { return worker_state_.Answer(request, send); },
                options.limits) {
    std::string all = "rounds told apart, each stage, several inputs, " + options.versions;
    all += DigestOf(options.check_inputs);
    if (options.max_error) all += fmt::format("max error {}, ", *options.max_error);
    for (const Entrant& entrant : entrants) all += EntrantDigest(entrant);
    field_ = HexDigest(all);
    num_threads_ = options.num_threads;
    output_ = options.output;
    for (size_t i = 0; i < entrants.size(); ++i) {
      result_.contestants.push_back({});
      result_.contestants[i].name = entrants[i].name;
      result_.contestants[i].is_single = entrants[i].is_single;
      result_.contestants[i].is_extra = entrants[i].is_extra;
      result_.contestants[i].estimated_seconds = entrants[i].estimated_seconds;
    }
  }

  PlayOffResult Run() {
    for (size_t index : KnownRanking()) {
      if (Ask({static_cast<int>(index)}, /*time=*/false)) return std::move(result_);
    }
    std::vector<int> field;
    for (size_t i = 0; i < entrants_.size(); ++i) {
      if (result_.contestants[i].failure.empty()) field.push_back(static_cast<int>(i));
    }
    while (!field.empty() && !Ask(field, /*time=*/true)) {
      std::erase_if(field, [&](int i) { return !result_.contestants[static_cast<size_t>(i)].failure.empty(); });
    }
    if (result_.winner < 0) {
      throw Error(ErrorCategory::kUnsupported, "no cover of the model could be built and run", "",
                  result_.contestants.empty() ? "" : "first failure: " + result_.contestants.front().failure);
    }
    Remember();
    return std::move(result_);
  }

 private:
  TuningKey KeyOf(size_t index) const {
    return {EntrantDigest(entrants_[index]), field_, "play-off", entrants_[index].name, machine_, num_threads_};
  }

  /// Indices, the best first, when the database knows this very field, else empty.
  std::vector<size_t> KnownRanking() {
    for (size_t i = 0; i < entrants_.size(); ++i) {
      const std::optional<TuningRecord> record = database_.Find(KeyOf(i));
      if (!record) return {};
      Contestant& contestant = result_.contestants[i];
      if (!record->ok) {
        contestant.failure = record->reason;
        continue;
      }
      contestant.p50 = record->p50;
      contestant.p90 = record->p90;
      contestant.minimum = record->minimum;
      contestant.samples = static_cast<int>(record->num_samples);
      contestant.max_error = record->max_error;
      const Json label = Json::parse(record->label);
      contestant.partitions = label.at("partitions").get<std::map<std::string, int>>();
      contestant.relative = label.at("relative");
      contestant.first_relative = label.at("first_relative");
      contestant.is_finalist = label.at("is_finalist");
    }
    return Ranked(result_.contestants);
  }

  void Remember() {
    for (size_t i = 0; i < entrants_.size(); ++i) {
      const Contestant& contestant = result_.contestants[i];
      TuningRecord record;
      record.ok = contestant.failure.empty();
      record.reason = contestant.failure;
      record.minimum = contestant.minimum;
      record.p50 = contestant.p50;
      record.p90 = contestant.p90;
      record.num_samples = contestant.samples;
      record.max_error = contestant.max_error;
      record.label = Json{{"partitions", contestant.partitions},
                          {"relative", contestant.relative},
                          {"first_relative", contestant.first_relative},
                          {"is_finalist", contestant.is_finalist}}
                         .dump();
      database_.Put(KeyOf(i), record);
    }
  }

  /// True when the worker answered with a winner. Otherwise at least one of `field` has a failure now.
  bool Ask(const std::vector<int>& field, bool time) {
    int building = -1;
    const auto on_progress = [&](const std::string& text) {
      int round = 0;
      int rounds = 0;
      if (std::sscanf(text.c_str(), "build %d", &building) == 1) {
        Show(0, 0, "building " + entrants_[static_cast<size_t>(building)].name);
      } else if (std::sscanf(text.c_str(), "round %d %d", &round, &rounds) == 2) {
        building = -1;
        Show(round, rounds, "timing");
      } else {
        Show(0, 0, text);
      }
    };
    const Result<std::string> answer = worker_.Call(Json{{"entrants", field}, {"time", time}}.dump(), on_progress);
    if (!answer.ok()) {
      // Whoever was being built when the worker died is out; died it while timing, no one can tell who did it.
      for (int index : field) {
        if (building < 0 || building == index) {
          result_.contestants[static_cast<size_t>(index)].failure = answer.reason().text;
        }
      }
      return false;
    }
    const Json json = Json::parse(*answer);
    for (const Json& one : json.at("contestants")) {
      const auto index = one.at("index").get<size_t>();
      const Contestant before = result_.contestants[index];
      result_.contestants[index] = ContestantFrom(one, entrants_[index]);
      if (!time) {  // keep what the database knew
        const double max_error = result_.contestants[index].max_error;
        const std::string failure = result_.contestants[index].failure;
        result_.contestants[index] = before;
        result_.contestants[index].max_error = max_error;
        result_.contestants[index].failure = failure;
      }
    }
    result_.winner = json.at("winner");
    if (result_.winner < 0) return false;
    if (json.contains("write_failure")) {
      throw Error(ErrorCategory::kResource, json.at("write_failure"), output_.string());
    }
    result_.output_bytes = json.at("output_bytes");
    const Json& seconds = json.at("seconds");
    result_.seconds = {seconds[0], seconds[1], seconds[2], seconds[3]};
    return true;
  }

  void Show(int round, int rounds, const std::string& what) {
    if (progress_ != nullptr) progress_->PlayOff(round, rounds, what);
  }

  const std::vector<Entrant>& entrants_;
  TuningDatabase& database_;
  std::string machine_;
  CompileProgress* progress_;
  PlayOffWorker worker_state_;
  Worker worker_;
  std::string field_;  ///< digest of all entrants
  int num_threads_ = 1;
  std::filesystem::path output_;
  PlayOffResult result_;
};

}  // namespace

std::string DigestOf(const std::vector<std::vector<Tensor>>& inputs) {
  std::string digests;
  for (const std::vector<Tensor>& tensors : inputs) {
    for (const Tensor& tensor : tensors) {
      digests += tensor.dtype().ToString() + ToString(tensor.shape());
      digests.append(tensor.data<char>(), tensor.size_bytes());
    }
  }
  return digests.empty() ? "" : HexDigest(digests);
}

double SecondsBeside(const Contestant& contestant, const Contestant& other) {
  const bool in_final = contestant.is_finalist && other.is_finalist;
  return other.p50 *
         (in_final ? contestant.relative / other.relative : contestant.first_relative / other.first_relative);
}

std::vector<size_t> Ranked(std::span<const Contestant> contestants) {
  std::vector<size_t> ranked;
  for (size_t i = 0; i < contestants.size(); ++i) {
    if (contestants[i].failure.empty()) ranked.push_back(i);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](size_t a, size_t b) {
    const Contestant& x = contestants[a];
    const Contestant& y = contestants[b];
    return x.is_finalist != y.is_finalist ? x.is_finalist : x.relative < y.relative;
  });
  if (ranked.empty()) return ranked;
  const Contestant& fastest = contestants[ranked.front()];
  const auto end = std::find_if(ranked.begin(), ranked.end(), [&](size_t i) {
    return contestants[i].is_finalist != fastest.is_finalist ||
           contestants[i].relative > fastest.relative * (1 + kAsGood);
  });
  const auto preferred = std::min_element(
      ranked.begin(), end, [&](size_t a, size_t b) { return Preference(contestants[a]) < Preference(contestants[b]); });
  std::rotate(ranked.begin(), preferred, preferred + 1);
  return ranked;
}

PlayOffResult RunPlayOff(const IRModule& original, const std::vector<Entrant>& entrants, TuningDatabase& database,
                         const std::string& machine, const PlayOffOptions& options, CompileProgress* progress) {
  return RunHeats(entrants, options, [&](const std::vector<Entrant>& field, const PlayOffOptions& own) {
    return PlayOff(original, field, database, machine, own, progress).Run();
  });
}

}  // namespace collage
