// measure_pack.cc: asks a measuring estimator for everything that a pack holds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <utility>

#include "collage/measuring_pack.h"
#include "collage/support/error.h"
#include "collage/target/compiles_elsewhere.h"
#include "cost/database/measured_machine.h"
#include "cost/estimator/measuring_estimator.h"
#include "driver/builtins.h"
#include "driver/pack/measuring_pack.h"
#include "driver/pack/packed_partitions.h"
#include "driver/tuning/schedule_tuning.h"
#include "support/machine.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

/// One runner, and so one worker, for the estimators of all models.
class SharedRunner : public Runner {
 public:
  explicit SharedRunner(Runner& runner) : runner_(runner) {}
  void Run(const std::vector<MeasureRequest>& requests, const OnAnswer& on_answer) override {
    runner_.Run(requests, on_answer);
  }

 private:
  Runner& runner_;
};

/// The versions of toolchains under which a pack is measured here.
struct Fitness {
  std::vector<bool> is_fit;  ///< by the toolchain's number
  std::map<std::string, std::string> versions, compilers;
  std::vector<std::string> left_out;
};

/// Why partitions of `packed` cannot be measured here; empty where they can. Sets the version that they have here.
std::string WhyUnfit(const MeasuringPack& pack, const PackedToolchain& packed, const Toolchain* toolchain,
                     std::string& version) {
  if (toolchain == nullptr) return "this build has no such toolchain";
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  const Toolchain& registered = *registry.Find(RegisteredName(packed.name));
  if (registry.RevisionOf(registered) != packed.revision) return "the pack was made by another build of Collage";
  if (packed.for_processor && pack.machine != ThisMachine().fingerprint) {
    return fmt::format("its code is for processors of kind '{}' ({}), this one is of kind '{}'", pack.machine, pack.cpu,
                       ThisMachine().fingerprint);
  }
  const Availability runner = ProbeRunnerOf(*toolchain);
  if (!runner.available) return runner.reason;
  // Keys have the version of the toolchain without options.
  const std::string here = ProbeRunnerOf(registered).version;
  const std::optional<std::string> joined = JoinedVersion(registered, packed.compiler, here);
  if (!joined) return fmt::format("its version is {}, the pack was made with {}", here, packed.compiler);
  version = *joined + "+" + packed.revision;
  return "";
}

Fitness FindFitness(const MeasuringPack& pack, const PackedPartitions& partitions) {
  Fitness fitness;
  for (size_t i = 0; i < pack.toolchains.size(); ++i) {
    const PackedToolchain& packed = pack.toolchains[i];
    std::string version;
    const std::string why = WhyUnfit(pack, packed, partitions.ToolchainAt(static_cast<int>(i)), version);
    fitness.is_fit.push_back(why.empty());
    if (!why.empty()) {
      fitness.left_out.push_back(fmt::format("'{}': {}", packed.name, why));
      continue;
    }
    fitness.versions[RegisteredName(packed.name)] = version;
    fitness.compilers[RegisteredName(packed.name)] = packed.compiler;
  }
  return fitness;
}

/// A cost to find out: a candidate's, a conversion's, or those of a candidate's schedules.
struct Item {
  enum class Kind : uint8_t { kCandidate, kConversion, kSchedules };
  Kind kind;
  size_t model;
  size_t index;  ///< among the model's candidates or conversions
  PackedRank rank;
};

class PackMeasurer {
 public:
  PackMeasurer(const MeasuringPack& pack, const MeasurePackOptions& options)
      : pack_(pack),
        options_(options),
        partitions_(pack),
        fitness_(FindFitness(pack, partitions_)),
        store_(pack, partitions_),
        database_(options.database.empty() ? TuningDatabase::DefaultPlace() : options.database),
        runner_(MakeLocalRunner(partitions_, Limits(options), &store_)) {}

  MeasurePackReport Run() {
    {
      const Stopwatch stopwatch(report_.seconds);
      Prepare();
      const std::vector<Item> items = Items();
      auto item = items.begin();
      for (; item != items.end() && item->rank.stage == 0; ++item) Find(*item);
      for (MeasuringEstimator& estimator : estimators_) FindBetween(estimator);
      for (; item != items.end(); ++item) Find(*item);
      for (const PackedPlayOff& play_off : pack_.play_offs) Play(play_off);
      for (const MeasuredModelReport& model : report_.models) report_.complete = report_.complete && model.left == 0;
    }
    return std::move(report_);
  }

 private:
  static WorkerLimits Limits(const MeasurePackOptions& options) {
    return {.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.candidate_timeout_seconds * 1000)),
            .memory_bytes = options.candidate_memory_bytes};
  }

  void Prepare() {
    const MachineInfo& here = ThisMachine();
    report_.machine = options_.name.empty() ? here.fingerprint : options_.name;
    report_.cpu = here.cpu;
    report_.database = database_.place();
    report_.num_threads = pack_.num_threads;
    report_.left_out = fitness_.left_out;
    report_.complete = true;
    for (const std::string& text : fitness_.left_out) Warn("not measured: " + text);
    for (const std::string& text : database_.notices()) Warn(text);
    for (size_t i = 0; i < fitness_.is_fit.size(); ++i) {
      if (fitness_.is_fit[i]) report_.toolchains.push_back(pack_.toolchains[i].name);
    }
    if (report_.toolchains.empty()) {
      throw Error(ErrorCategory::kUnavailable, "no toolchain of the measuring pack can be measured here", "",
                  fitness_.left_out.empty() ? "" : fitness_.left_out.front());
    }
    if (here.processors < pack_.num_threads) {
      throw Error(ErrorCategory::kUnavailable,
                  fmt::format("the measuring pack is for {} threads, there are {} processors here", pack_.num_threads,
                              here.processors),
                  "", fmt::format("make the pack with --threads {}", here.processors));
    }
    // Contenders are of the toolchains that their machine is known to have.
    if (pack_.play_offs.empty()) PutMachine();
    for (const PackedModel& model : pack_.models) AddModel(model);
    if (options_.progress != nullptr) options_.progress->Phase("measure");
  }

  void PutMachine() {
    const MachineInfo& here = ThisMachine();
    Put(database_, {report_.machine, here.fingerprint, here.cpu, pack_.num_threads, CacheBytes(CacheLevel::kNear),
                    CacheBytes(CacheLevel::kShared), fitness_.versions, fitness_.compilers});
  }

  void AddModel(const PackedModel& model) {
    report_.models.emplace_back().name = model.name;
    MeasuringEstimator::Options estimating;
    estimating.machine = ThisMachine().fingerprint;
    estimating.context.num_threads = pack_.num_threads;
    estimating.context.timing.operands =
        model.operands.empty() ? LevelFor(model.footprint_bytes) : CacheLevelFromString(model.operands);
    estimating.context.timing.percentile = model.percentile / 100.0;
    estimating.versions = fitness_.versions;
    estimating.should_stop = [this] { return IsOver(); };
    const auto on_measure = [this](const EstimatorCounts&, const std::string& label) {
      if (options_.progress != nullptr) options_.progress->Measuring(num_measured_, num_known_, label);
    };
    estimators_.emplace_back(database_, std::make_unique<SharedRunner>(*runner_), partitions_, std::move(estimating),
                             on_measure);
  }

  bool IsOver() const {
    const double spent = std::chrono::duration<double>(Clock::now() - started_).count();
    return spent >= options_.seconds || (options_.should_stop && options_.should_stop());
  }

  /// All that is to be found out here, the most valuable first.
  std::vector<Item> Items() {
    std::vector<Item> items;
    for (size_t m = 0; m < pack_.models.size(); ++m) {
      const PackedModel& model = pack_.models[m];
      for (size_t i = 0; i < model.candidates.size(); ++i) {
        const PackedCandidate& candidate = model.candidates[i];
        const PackedPartition& partition = PartitionOf(candidate);
        if (!fitness_.is_fit[static_cast<size_t>(partition.toolchain)]) {
          ++report_.models[m].left_out;
          continue;
        }
        items.push_back({Item::Kind::kCandidate, m, i, candidate.rank});
        if (partition.codes.size() > 1) items.push_back({Item::Kind::kSchedules, m, i, {2, candidate.rank.share}});
      }
      // As many as there are formats of large values: each takes milliseconds, and all are part of any cover.
      for (size_t i = 0; i < model.conversions.size(); ++i) {
        if (IsHere(model.conversions[i])) items.push_back({Item::Kind::kConversion, m, i, {0, 0}});
      }
    }
    std::ranges::stable_sort(items, [](const Item& a, const Item& b) {
      return std::pair(a.rank.stage, -a.rank.share) < std::pair(b.rank.stage, -b.rank.share);
    });
    if (options_.progress != nullptr) options_.progress->Costs(static_cast<int64_t>(items.size()));
    return items;
  }

  const PackedPartition& PartitionOf(const PackedCandidate& candidate) const {
    return pack_.partitions[static_cast<size_t>(candidate.partition)];
  }

  /// Whether the device of each memory on the way has a toolchain here: without it, nothing is converted to it.
  bool IsHere(const PackedConversion& conversion) const {
    for (const Layout layout : {conversion.from, conversion.to}) {
      if (MemoryOf(layout) == Memory::kHost) continue;
      bool is_here = false;
      for (size_t i = 0; i < fitness_.is_fit.size(); ++i) {
        const Toolchain* toolchain = partitions_.ToolchainAt(static_cast<int>(i));
        is_here = is_here || (fitness_.is_fit[i] && toolchain->device_type() == DeviceTypeOf(MemoryOf(layout)));
      }
      if (!is_here) return false;
    }
    return true;
  }

  CostQuery QueryFor(const PackedCandidate& candidate) const {
    const PackedPartition& partition = PartitionOf(candidate);
    return {candidate.workload,
            partition.request.layouts,
            candidate.work,
            *partitions_.ToolchainAt(partition.toolchain),
            CandidateHandle{candidate.partition},
            candidate.label,
            candidate.target};
  }

  void Find(const Item& item) {
    MeasuringEstimator& estimator = estimators_[item.model];
    const PackedModel& model = pack_.models[item.model];
    switch (item.kind) {
      case Item::Kind::kCandidate: return FindCandidate(estimator, model.candidates[item.index], item.model);
      case Item::Kind::kConversion: return FindConversion(estimator, model.conversions[item.index], item.model);
      case Item::Kind::kSchedules: return FindSchedules(estimator, model.candidates[item.index], item.model);
    }
  }

  /// Counts a cost, known before or found out by `find`, which says whether it was.
  void Count(bool is_known, MeasuredModelReport& model, const std::function<bool()>& find) {
    if (!is_known && IsOver()) {
      ++model.left;
      return;
    }
    if (is_known) {
      ++num_known_;
      ++model.from_database;
      find();
    } else if (find()) {
      ++num_measured_;
      ++model.measured;
    } else {
      ++model.left;
    }
  }

  void FindCandidate(MeasuringEstimator& estimator, const PackedCandidate& candidate, size_t number) {
    const CostQuery query = QueryFor(candidate);
    MeasuredModelReport& model = report_.models[number];
    Count(estimator.IsAtHand(query), model, [&] {
      const TuningRecord record = estimator.Estimate(query);
      if (!record.ok && !record.is_skipped) ++model.failed;
      return !record.is_skipped;
    });
  }

  void FindConversion(MeasuringEstimator& estimator, const PackedConversion& one, size_t number) {
    const bool is_known = estimator.IsConversionAtHand(one.shape, one.dtype, one.from, one.to);
    Count(is_known, report_.models[number], [&] {
      estimator.ConvertSeconds(one.shape, one.dtype, one.from, one.to);
      return estimator.IsConversionAtHand(one.shape, one.dtype, one.from, one.to);
    });
  }

  /// Finds the costs between partitions: one more of them, and switches of toolchains.
  void FindBetween(MeasuringEstimator& estimator) const {
    estimator.TransitionSeconds();
    for (size_t from = 0; from < fitness_.is_fit.size(); ++from) {
      for (size_t to = 0; to < fitness_.is_fit.size(); ++to) {
        if (from == to || !fitness_.is_fit[from] || !fitness_.is_fit[to]) continue;
        const Toolchain& one = *partitions_.ToolchainAt(static_cast<int>(from));
        const Toolchain& other = *partitions_.ToolchainAt(static_cast<int>(to));
        if (!WhyIncompatible(one, other)) estimator.SwitchSeconds(one, other);
      }
    }
  }

  /// Tries the schedules that were compiled, and takes the fastest if it is faster than the toolchain's own choice.
  void FindSchedules(MeasuringEstimator& estimator, const PackedCandidate& candidate, size_t number) {
    ScheduleTask task{QueryFor(candidate), {}};
    if (!estimator.IsAtHand(task.query)) return void(++report_.models[number].left);
    task.record = estimator.Estimate(task.query);
    if (!task.record.ok || !task.record.schedule.empty()) return;  // has been tuned
    std::vector<std::string> schedules;
    const std::vector<PackedCode>& codes = PartitionOf(candidate).codes;
    for (size_t i = 1; i < codes.size(); ++i) schedules.push_back(codes[i].schedule);
    const int64_t before = estimator.counts().trials;
    const bool is_complete = TryNear(estimator, task, schedules, [&] { return !IsOver(); });
    report_.trials += estimator.counts().trials - before;
    if (!is_complete) ++report_.models[number].left;
  }

  /// Builds the contenders of what the pack has, checks and times them, as a compilation here would.
  void Play(const PackedPlayOff& packed) {
    MeasuredPlayOffReport& played = report_.play_offs.emplace_back();
    played.model = packed.model;
    played.failure = WhyNotHere(packed);
    if (!played.failure.empty()) return Warn(fmt::format("no play-off of {}: {}", packed.model, played.failure));
    if (IsOver()) {
      report_.complete = false;
      return;
    }
    PlayOffOptions playing;
    playing.num_threads = pack_.num_threads;
    playing.limits = PlayOffLimits(Limits(options_));
    playing.versions = VersionsText(packed.versions);
    playing.compiled = &store_;
    if (options_.progress != nullptr) options_.progress->Phase("play-off");
    try {
      playing.check = EvaluateReference(packed.original, playing, options_.progress);
      PlayOffResult result = RunPlayOff(packed.original, packed.contenders, database_, ThisMachine().fingerprint,
                                        playing, options_.progress);
      played.is_known = result.seconds.timing == 0;
      played.winner = result.contenders[static_cast<size_t>(result.winner)].name;
      played.contenders = std::move(result.contenders);
    } catch (const Error& error) {
      if (error.category() != ErrorCategory::kUnsupported) throw;
      played.failure = fmt::format("{}{}{}", error.message(), error.hint().empty() ? "" : "; ", error.hint());
      Warn(fmt::format("no contender of {} is left: {}", packed.model, played.failure));
    }
  }

  /// Why contenders are not timed here; empty where they are.
  std::string WhyNotHere(const PackedPlayOff& packed) const {
    const std::string& here = ThisMachine().fingerprint;
    if (packed.machine != here) {
      return fmt::format("costs of a machine of kind '{}' chose its contenders, this one is of kind '{}'",
                         packed.machine, here);
    }
    if (!fitness_.left_out.empty()) return fitness_.left_out.front();
    for (const auto& [name, version] : fitness_.versions) {
      const auto chosen_by = packed.versions.find(name);
      if (chosen_by == packed.versions.end() || chosen_by->second != version) {
        return fmt::format("its contenders were chosen by costs of another version of '{}' than {}", name, version);
      }
    }
    return "";
  }

  void Warn(const std::string& text) const {
    if (options_.progress != nullptr) options_.progress->Warn(text);
  }

  const MeasuringPack& pack_;
  const MeasurePackOptions& options_;
  PackedPartitions partitions_;
  Fitness fitness_;
  PackedStore store_;
  TuningDatabase database_;
  std::unique_ptr<Runner> runner_;
  std::deque<MeasuringEstimator> estimators_;  ///< by model
  Clock::time_point started_ = Clock::now();
  int64_t num_measured_ = 0, num_known_ = 0;
  MeasurePackReport report_;
};

}  // namespace

MeasurePackReport MeasurePack(const std::filesystem::path& path, const MeasurePackOptions& options) {
  AddBuiltins();
  const MeasuringPack pack = ReadPack(path);
  return PackMeasurer(pack, options).Run();
}

}  // namespace collage
