// compile_model.cc: the main job: import, candidates, search, play-off.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "collage/compile.h"
#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "cost/estimator/estimators.h"
#include "driver/compile_program.h"
#include "driver/cover_finder.h"
#include "driver/dump.h"
#include "driver/end_to_end_errors.h"
#include "driver/participants.h"
#include "driver/partitioner.h"
#include "driver/play_off/play_off.h"
#include "driver/play_off/whole_model_check.h"
#include "driver/unsearched.h"
#include "driver/write_executable.h"
#include "lowering/partition_dump.h"
#include "program/regions.h"
#include "support/file.h"
#include "support/machine.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

// Memory that a worker may take beyond what the compiler holds.
constexpr int64_t kWorkerMemoryBytes = int64_t{12} << 30;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void DescribeModel(const IRModule& module, CompileReport& report) {
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) ++report.num_operators;
    if (const ConstantNode* constant = As<ConstantNode>(expr))
      report.num_parameters += constant->value().num_elements();
  });
}

/// Bytes that a run touches: weights once, every value once.
int64_t FootprintBytes(const IRModule& module) {
  int64_t bytes = 0;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (const ConstantNode* constant = As<ConstantNode>(expr)) {
      bytes += static_cast<int64_t>(constant->value().size_bytes());
    } else if (call != nullptr && call->op() != nullptr && !call->op()->is_reshape) {
      for (const Type& type : FlattenTensorTypes(call->checked_type())) {
        const TensorTypeNode* tensor = AsTensorType(type);
        bytes += NumElements(tensor->static_shape()) * static_cast<int64_t>(tensor->dtype().size_bytes());
      }
    }
  });
  return bytes;
}

/// Adds contenders, each distinct cover once.
class Field {
 public:
  Field(Partitioner& partitioner, const IRModule& module) : partitioner_(partitioner), module_(module) {}

  /// `is_extra`: no search chose it.
  void Add(const std::string& name, bool is_single, const Cover& cover, bool is_extra = false) {
    std::vector<int> sorted = cover.variants;
    std::sort(sorted.begin(), sorted.end());
    auto [it, is_new] = seen_.emplace(std::move(sorted), contenders_.size());
    if (!is_new) {
      // A mix that is a single toolchain's cover goes by the toolchain's name.
      if (is_single && !contenders_[it->second].is_single) {
        contenders_[it->second].name = name;
        contenders_[it->second].is_single = true;
      }
      return;
    }
    std::optional<IRModule> partitioned = partitioner_.Apply(cover, module_);
    if (!partitioned) {
      seen_.erase(it);
      return;
    }
    contenders_.push_back(
        {name, is_single, is_extra, std::move(*partitioned), cover.seconds, partitioner_.ToJson(cover)});
  }

  const std::vector<ContenderModule>& contenders() const { return contenders_; }

 private:
  Partitioner& partitioner_;
  const IRModule& module_;
  std::vector<ContenderModule> contenders_;
  std::map<std::vector<int>, size_t> seen_;
};

/// One compilation: what its phases hand to each other.
class Compilation {
 public:
  /// Of the graph `given`, which is called `model`.
  Compilation(const std::filesystem::path& model, const CompileOptions& options, const IRModule& given)
      : model_(model), options_(options), given_(given) {}

  /// `check_required`: throws before anything is written unless required toolchains take part.
  CompileReport Run(bool check_required) {
    const auto started = Clock::now();
    Prepare();
    std::vector<ContenderModule> contenders = FindContenders(/*must_cover=*/true);
    PlayOffResult result;
    try {
      result = PlayOff(contenders);
    } catch (const Error& error) {
      // A toolchain may decline, when it is to build, what nothing was left of the budget to try.
      if (error.category() != ErrorCategory::kUnsupported || !report_.budget_spent) throw;
      Warn("nothing could be built of what the budget left unmeasured: it is left out, but for native kernels");
      leaves_out_unknown_ = true;
      contenders = FindContenders(/*must_cover=*/true);
      result = PlayOff(contenders);
    }
    Report(result);
    if (check_required) CheckRequired(options_, report_, model_.string());
    Write(result, contenders[static_cast<size_t>(result.winner)]);
    report_.total_seconds = SecondsSince(started);
    return std::move(report_);
  }

  CompileReport Tune() {
    const auto started = Clock::now();
    Prepare();
    FindContenders(/*must_cover=*/false);
    report_.total_seconds = SecondsSince(started);
    return std::move(report_);
  }

 private:
  /// Toolchains, module and database.
  void Prepare() {
    const auto started = Clock::now();
    if (options_.percentile < 1 || options_.percentile > 99) {
      throw Error(ErrorCategory::kInput, fmt::format("a percentile is from 1 to 99, got {}", options_.percentile));
    }
    for (const NamedInputs& inputs : options_.check_inputs) {
      check_inputs_.push_back(InOrderOfParameters(inputs, given_.main(), model_.string()));
    }
    report_.model = model_.filename().string();
    report_.output = options_.output;
    report_.machine = ThisMachine().cpu;
    report_.num_threads = options_.num_threads > 0 ? options_.num_threads : AvailableProcessors();
    SetNumThreads(report_.num_threads);
    report_.toolchains = ProbeToolchains();
    participants_.emplace(options_, report_.toolchains);
    for (ToolchainReport& probed : report_.toolchains) {
      for (const Toolchain* toolchain : toolchains()) {
        if (GoesBy(*toolchain, probed.name)) probed.participants.push_back(toolchain->name());
      }
      probed.takes_part = !probed.participants.empty();
    }
    report_.precision_variants = participants_->variants();
    report_.no_precision_variants = participants_->no_variants();
    for (const std::string& notice : participants_->notices()) Warn(notice);

    Phase("import");
    module_ = PrepareForPartitioning(given_);
    DescribeModel(module_, report_);
    database_ = std::make_unique<TuningDatabase>(options_.database.empty() ? TuningDatabase::DefaultPlace()
                                                                           : options_.database);
    for (const std::string& notice : database_->notices()) Warn(notice);
    report_.import_seconds = SecondsSince(started);
  }

  void Phase(const char* name) {
    if (options_.progress != nullptr) options_.progress->Phase(name);
  }
  void Warn(const std::string& text) {
    if (options_.progress != nullptr) options_.progress->Warn(text);
  }

  const std::vector<const Toolchain*>& toolchains() const { return participants_->toolchains(); }

  WorkerLimits Limits() const {
    return {.timeout = std::chrono::milliseconds(static_cast<int64_t>(options_.candidate_timeout_seconds * 1000)),
            .memory_bytes = kWorkerMemoryBytes};
  }

  RunnerContext ForRunner(const FindPartition& find) const {
    RunnerContext context{find, Limits(), report_.num_threads, {}, options_.runner_python, {}};
    for (const ToolchainReport& probed : report_.toolchains) {
      if (probed.takes_part) context.versions[probed.name] = TuningVersion(probed);
    }
    if (options_.progress != nullptr) {
      context.on_warning = [progress = options_.progress](const std::string& text) { progress->Warn(text); };
    }
    return context;
  }

  /// By toolchain: the vendor's version and the revision of our code for it.
  std::map<std::string, std::string> Versions() const {
    std::map<std::string, std::string> versions;
    for (const ToolchainReport& probed : report_.toolchains) versions[probed.name] = TuningVersion(probed);
    return versions;
  }

  /// The covers that meet in the play-off. Throws kUnsupported when there must be one and is none.
  std::vector<ContenderModule> FindContenders(bool must_cover) {
    const auto started = Clock::now();
    if (!options_.partitioning.empty()) return {GivenContender()};
    Phase("candidates");
    Partitioner partitioner(module_, toolchains(), report_.num_threads, participants_->Rules());
    report_.num_candidates = static_cast<int64_t>(partitioner.num_candidates());
    report_.num_variants = static_cast<int64_t>(partitioner.num_variants());
    report_.num_distinct = static_cast<int64_t>(partitioner.num_distinct());
    if (options_.progress != nullptr) options_.progress->Costs(report_.num_distinct);
    MeasuringEstimator::Options estimating;
    estimating.machine = ThisMachine().fingerprint;
    estimating.context.num_threads = report_.num_threads;
    estimating.context.timing.operands =
        options_.operands.empty() ? LevelFor(FootprintBytes(module_)) : CacheLevelFromString(options_.operands);
    estimating.context.timing.percentile = options_.percentile / 100.0;
    estimating.versions = Versions();
    estimating.max_measurements = options_.max_measurements;
    estimating.should_stop = options_.should_stop;
    const std::unique_ptr<CostEstimator> owned_estimator = MakeEstimatorFor(partitioner, estimating);
    CostEstimator& estimator = *owned_estimator;
    partitioner.SetEstimator(&estimator);
    if (leaves_out_unknown_) partitioner.LeaveOutUnknown(participants_->native());

    Phase("search");
    const auto judge = [&](const Cover& cover) {
      estimator.CheckComplete();  // before anything is built
      return SecondsEndToEnd(partitioner, cover);
    };
    const PlayOffOptions settings = PlayOffSettings();
    EndToEndErrors errors(module_, toolchains(), *database_, ThisMachine().fingerprint, settings);
    std::function<double(const Cover&)> error_of;
    if (options_.max_error) error_of = [&](const Cover& cover) { return errors.Of(partitioner.ToJson(cover)); };
    const auto find_covers = [&] {
      return CoverFinder(partitioner, estimator, *participants_, options_, judge, error_of).Run();
    };
    FoundCovers found = find_covers();
    if (options_.tuning_seconds > 0 || options_.tuning_trials > 0) {
      TuneSchedules(partitioner, estimator, found);
      found = find_covers();
    }
    const int64_t before = estimator.counts().measured;
    const std::vector<Cover> all = AllCovers(partitioner, estimator);
    if (estimator.counts().measured != before) found = find_covers();  // as whoever compiles it again will find them
    estimator.CheckComplete();
    report_.num_states = found.num_states;
    report_.bounded = found.bounded;
    if (report_.bounded) {
      report_.bounded->num_built = errors.num_built();
      report_.bounded->seconds = errors.seconds();
    }
    Field field(partitioner, module_);
    for (const NamedCover& one : found.covers) field.Add(one.name, one.is_single, one.cover);
    for (size_t i = 0; i < all.size(); ++i) {
      field.Add(fmt::format("collage-cover-{}", i + 1), false, all[i], /*is_extra=*/true);
    }
    if (field.contenders().empty() && must_cover) {
      throw Error(ErrorCategory::kUnsupported,
                  "no toolchain covers the model: " + partitioner.ExplainStuck(found.stuck_at), model_.string());
    }
    report_.num_measured = estimator.counts().measured;
    report_.num_remeasured = estimator.counts().remeasured;
    report_.num_from_database = estimator.counts().from_database;
    report_.num_failed = estimator.counts().failed;
    report_.num_below_bound = estimator.counts().below_bound;
    report_.budget_spent = estimator.counts().skipped > 0;
    report_.failures = estimator.failures();
    report_.search_seconds = SecondsSince(started);
    return field.contenders();
  }

  std::unique_ptr<CostEstimator> MakeEstimatorFor(const Partitioner& partitioner,
                                                  const MeasuringEstimator::Options& estimating) const {
    const FindPartition find = [&](int64_t job) { return partitioner.Find(job); };
    if (options_.estimate) return MakeCustomEstimator(find, options_.estimate);
    const auto on_measure = [this](const EstimatorCounts& counts, const std::string& label) {
      if (options_.progress == nullptr) return;
      options_.progress->Measuring(counts.measured, counts.from_database, label);
    };
    return MakeEstimator(options_.estimator,
                         {.database = *database_,
                          .runner = MakeRunner(options_.runner, ForRunner(find)),
                          .find = find,
                          .find_sub_graph = [&](int64_t job) { return partitioner.FindSubGraph(job); },
                          .options = estimating,
                          .on_measure = on_measure,
                          .argument = ""});
  }

  /// Of the partitions of what may win.
  void TuneSchedules(Partitioner& partitioner, const CostEstimator& estimator, const FoundCovers& found) {
    if (!estimator.TriesSchedules()) {
      throw Error(ErrorCategory::kInput, fmt::format("estimator '{}' tries no schedules", options_.estimator), "",
                  "leave --tuning-budget out, or measure");
    }
    Phase("tuning");
    std::vector<Cover> covers;
    for (const NamedCover& one : found.covers) covers.push_back(one.cover);
    report_.tuning =
        partitioner.TuneSchedules(covers, {options_.tuning_seconds, options_.tuning_trials, options_.should_stop});
  }

  /// All covers when they are few and it is wanted, else none.
  std::vector<Cover> AllCovers(Partitioner& partitioner, const CostEstimator& estimator) {
    if (options_.max_optimality_covers == 0 || !options_.partition_for.empty()) return {};
    const std::optional<std::vector<Cover>> all = partitioner.AllCovers(options_.max_optimality_covers);
    if (!all) {
      report_.optimality_loss_unknown =
          estimator.counts().skipped > 0
              ? "not known: the budget was spent"
              : fmt::format("not feasible: more than {} covers", options_.max_optimality_covers);
    }
    report_.num_covers = all ? static_cast<int64_t>(all->size()) : 0;
    return all.value_or(std::vector<Cover>());
  }

  /// Needs the winner: the best of all, when all were tried.
  void SetOptimalityLoss(int winner) {
    if (report_.num_covers == 0) return;
    std::vector<Contestant> chosen;
    std::copy_if(report_.contestants.begin(), report_.contestants.end(), std::back_inserter(chosen),
                 [](const Contestant& one) { return !one.is_extra; });
    const std::vector<size_t> ranked = Ranked(chosen);
    if (ranked.empty()) return;
    const Contestant& fastest = report_.contestants[static_cast<size_t>(winner)];
    report_.optimality_loss_seconds = SecondsBeside(chosen[ranked.front()], fastest) - fastest.p50;
  }

  /// Phase 4 alone: the choice of partitions that a file holds.
  ContenderModule GivenContender() const {
    const Partitioner partitioner(module_, {}, report_.num_threads);
    const std::string text = ReadFile(options_.partitioning);
    auto [partitioned, seconds] = partitioner.ApplyJson(text, options_.partitioning.string(), toolchains(), module_);
    return {"given", false, false, std::move(partitioned), seconds, text};
  }

  /// Checked and timed alone; infinite when it cannot be run, or time is up.
  double SecondsEndToEnd(const Partitioner& partitioner, const Cover& cover) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kTimedSeconds = 1;
    std::optional<IRModule> partitioned = partitioner.Apply(cover, module_);
    if (!partitioned || (options_.should_stop && options_.should_stop())) return kInfinity;
    PlayOffOptions play_off = PlayOffSettings();
    play_off.first_seconds = kTimedSeconds;
    try {
      const std::vector<ContenderModule> one{{"individual", false, false, std::move(*partitioned), cover.seconds, ""}};
      return RunPlayOff(module_, one, *database_, ThisMachine().fingerprint, play_off, nullptr).contestants[0].p50;
    } catch (const Error& error) {
      if (error.category() == ErrorCategory::kUnsupported) return kInfinity;
      throw;
    }
  }

  PlayOffOptions PlayOffSettings() const {
    PlayOffOptions play_off;
    play_off.num_threads = report_.num_threads;
    play_off.limits = Limits();
    play_off.limits.timeout = std::max(play_off.limits.timeout, std::chrono::milliseconds(120'000));
    play_off.limits.memory_bytes = 0;
    play_off.max_error = options_.max_error;
    play_off.check_inputs = check_inputs_;
    for (const auto& [name, version] : Versions()) play_off.versions += name + " " + version + " ";
    std::vector<std::string> targets;
    for (const Toolchain* toolchain : toolchains()) targets.push_back(participants_->TargetOf(*toolchain));
    play_off.metadata_json =
        nlohmann::json{{"model", report_.model}, {"machine", report_.machine}, {"targets", targets}}.dump();
    return play_off;
  }

  PlayOffResult PlayOff(const std::vector<ContenderModule>& contenders) {
    Phase("play-off");
    const Stopwatch stopwatch(report_.play_off_seconds);
    return RunPlayOff(module_, contenders, *database_, ThisMachine().fingerprint, PlayOffSettings(), options_.progress);
  }

  /// The winner, its choice of partitions, and what they are compiled to, as far as these are wanted.
  void Write(PlayOffResult& result, const ContenderModule& winner) {
    if (options_.progress != nullptr) options_.progress->PlayOff(0, 0, "write");
    {
      const Stopwatch play_off(report_.play_off_seconds);
      const Stopwatch writing(report_.play_off_parts.write);
      report_.output_bytes = WriteExecutable(*result.executable, options_.output);
      result.executable.reset();  // with its worker
    }
    if (!options_.write_partitioning.empty()) {
      AtomicFile file(options_.write_partitioning);
      file.Write(winner.partitioning);
      file.Commit();
    }
    if (!options_.dump.empty()) {
      Phase("dump");
      DumpPartitions(winner.module, report_.num_threads, PlayOffSettings().limits, options_.dump);
    }
  }

  /// What the play-off found out, in the report and the database.
  void Report(PlayOffResult& result) {
    report_.contestants = std::move(result.contestants);
    report_.winner = report_.contestants[static_cast<size_t>(result.winner)].name;
    report_.play_off_parts = result.seconds;
    const auto best = std::ranges::find(report_.contestants, "", &Contestant::failure);
    if (best != report_.contestants.end() && best->estimated_seconds > 0) {
      report_.additive_error_seconds = best->p50 - best->estimated_seconds;
    }
    const Contestant& winner = report_.contestants[static_cast<size_t>(result.winner)];
    for (const Contestant& contestant : report_.contestants) {
      const bool is_own_partitioning =
          std::any_of(toolchains().begin(), toolchains().end(),
                      [&](const Toolchain* toolchain) { return toolchain->name() == contestant.name; });
      if (!is_own_partitioning || !contestant.failure.empty()) continue;
      report_.apparent_loss_seconds[contestant.name] = winner.p50 - SecondsBeside(contestant, winner);
    }
    SetOptimalityLoss(result.winner);
    if (report_.play_off_parts.timing == 0) return;  // known from an earlier compilation, which was noted
    CompilationRecord record;
    record.model = report_.model;
    record.machine = ThisMachine().fingerprint;
    record.num_threads = report_.num_threads;
    record.versions = PlayOffSettings().versions;
    record.winner = report_.winner;
    record.seconds = winner.p50;
    record.additive_error = report_.additive_error_seconds;
    record.apparent_loss = nlohmann::json(report_.apparent_loss_seconds).dump();
    record.optimality_loss = report_.optimality_loss_seconds;
    database_->Put(record);
  }

  const std::filesystem::path& model_;
  const CompileOptions& options_;
  const IRModule& given_;
  CompileReport report_;
  std::vector<std::vector<Tensor>> check_inputs_;  ///< in the order of the parameters
  std::optional<Participants> participants_;
  bool leaves_out_unknown_ = false;  ///< Partitioner::LeaveOutUnknown
  IRModule module_;
  std::unique_ptr<TuningDatabase> database_;
};

/// Refuses numbers that mean nothing, contradictions, and places where nothing can be written: before all work.
void CheckOptions(const CompileOptions& options, bool only_tunes) {
  const auto refuse = [](const std::string& message, const std::string& where = "") {
    throw Error(ErrorCategory::kInput, message, where);
  };
  if (options.max_error && !(*options.max_error >= 0 && *options.max_error <= 1)) {
    refuse(fmt::format("the largest error is a share from 0 to 1, got {}", *options.max_error), "--max-error");
  }
  for (const double seconds : {options.budget_seconds, options.tuning_seconds, options.evolution_seconds}) {
    if (!(seconds >= 0)) refuse(fmt::format("a budget is not below 0 seconds, got {}", seconds));
  }
  if (!options.partitioning.empty() && !options.partition_for.empty()) {
    refuse("a partitioning is given beside a toolchain that is to be alone", "--partition-for");
  }
  if (only_tunes) return;
  if (!options.write_partitioning.empty()) {
    if (options.write_partitioning.lexically_normal() == options.output.lexically_normal()) {
      refuse("the executable and its partitioning go to the same file", options.output.string());
    }
    CheckCanWrite(options.write_partitioning);
  }
  if (!options.dump.empty()) PartitionDump{options.dump};  // throws where it cannot be begun
  CheckCanWrite(options.output);
}

void RefuseShapes(const CompileOptions& options, const std::string& where) {
  if (options.shapes.empty()) return;
  throw Error(ErrorCategory::kInput, "shapes are for models with dynamic inputs: a module states its own", where);
}

/// An ONNX model, or Relay text.
IRModule ReadModel(const std::filesystem::path& model, const CompileOptions& options) {
  if (model.extension() != ".relay") return ImportOnnx(model, {options.shapes, {}, /*keeps_open=*/true});
  RefuseShapes(options, model.string());
  return ParseModule(ReadFile(model), model.string());
}

/// Of a program, whose regions end in one executable: with toolchains only that can all be in one process, those first
/// that are first in the fixed order. Adds to `notices` which take no part.
CompileOptions ForOneProcess(const CompileOptions& options, std::vector<std::string>& notices) {
  const Participants participants(options, ProbeToolchains());
  const std::vector<const Toolchain*>& toolchains = participants.toolchains();
  const std::vector<std::vector<const Toolchain*>> sets = CompatibleSets(toolchains);
  if (sets.size() == 1) return options;
  CompileOptions own = options;
  own.toolchains.clear();
  own.targets.clear();
  own.accuracy.clear();
  own.precision.clear();
  for (const Toolchain* toolchain : sets.front()) own.targets.push_back(participants.TargetOf(*toolchain));
  for (const Toolchain* toolchain : toolchains) {
    const bool stays = std::find(sets.front().begin(), sets.front().end(), toolchain) != sets.front().end();
    if (stays) continue;
    notices.push_back(
        fmt::format("'{}' takes no part: it cannot be in one executable with others, and a program's "
                    "regions are compiled one by one; choose with --toolchains",
                    toolchain->name()));
  }
  return own;
}

/// Compiles a graph. Where toolchains are required, nothing is written unless they take part.
CompileReport CompileGraph(const IRModule& graph, const std::filesystem::path& name, const CompileOptions& options) {
  return Compilation(name, options, graph).Run(/*check_required=*/true);
}

/// The ONNX model `model`, which was imported as `main`, once more with all its shapes bound.
BindShapes BindByImport(const std::filesystem::path& model, const Function& main) {
  return [model, params = main->params()](const std::vector<Shape>& shapes) {
    ImportOptions bound;
    for (size_t i = 0; i < params.size(); ++i) bound.shapes[params[i]->name()] = shapes.at(i);
    return InferTypes(ImportOnnx(model, bound));
  };
}

/// As its kind asks for: a graph, or a program around several. `open_inputs`: of an ONNX model.
CompileReport CompileAny(const IRModule& module, const std::filesystem::path& name, const CompileOptions& options,
                         bool only_tunes, const std::vector<OpenInput>& open_inputs) {
  const auto on_graph = [&](const IRModule& graph, const std::filesystem::path& called, const CompileOptions& own) {
    return only_tunes ? Compilation(called, own, graph).Tune() : CompileGraph(graph, called, own);
  };
  std::vector<std::string> notices;  // of a search, for when there is the first region to search
  const auto on_region = [&](const IRModule& graph, const std::filesystem::path& called, const CompileOptions& own) {
    for (const std::string& notice : std::exchange(notices, {})) {
      if (own.progress != nullptr) own.progress->Warn(notice);
    }
    Compilation compilation(called, own, graph);
    return only_tunes ? compilation.Tune() : compilation.Run(/*check_required=*/false);
  };
  const IRModule graph = RunPasses({"ToGraphNormalForm"}, InferTypes(module));
  if (!IsProgram(graph)) return on_graph(graph, name, options);
  for (const NamedInputs& inputs : options.check_inputs) InOrderOfParameters(inputs, graph.main(), name.string());
  const IRModule program = PrepareForPartitioning(graph);
  const CompileOptions own = ForOneProcess(options, notices);
  const Participants participants(own, ProbeToolchains());
  // Of an ONNX model whose inputs are open, the shapes could have been given.
  DynamicShapesOptions unknown{participants.native(), !open_inputs.empty(), open_inputs, BindingHint(open_inputs)};
  if (open_inputs.empty()) {
    unknown.inputs = FindOpenInputs(program);
    unknown.hint = "give the sizes in the types of @main's parameters";
  }
  if (only_tunes) return TuneProgram(program, name.filename().string(), own, unknown, on_region);
  return CompileProgram(program, name.filename().string(), own, unknown,
                        {graph, open_inputs.empty() ? nullptr : BindByImport(name, graph.main())}, on_region);
}

CompileReport ReadAndCompile(const std::filesystem::path& model, const CompileOptions& options, bool only_tunes) {
  CheckOptions(options, only_tunes);
  const auto started = Clock::now();
  const IRModule module = ReadModel(model, options);
  const double seconds = SecondsSince(started);
  const bool is_onnx = model.extension() != ".relay";
  const std::vector<OpenInput> open = is_onnx ? FindOpenInputs(module) : std::vector<OpenInput>();
  CompileReport report = CompileAny(module, model, options, only_tunes, open);
  report.import_seconds += seconds;
  report.total_seconds += seconds;
  return report;
}

}  // namespace

CompileReport CompileModel(const std::filesystem::path& model, const CompileOptions& options) {
  return ReadAndCompile(model, options, /*only_tunes=*/false);
}

CompileReport CompileModule(const IRModule& module, const std::string& name, const CompileOptions& options) {
  CheckOptions(options, /*only_tunes=*/false);
  RefuseShapes(options, name);
  return CompileAny(module, name, options, /*only_tunes=*/false, /*open_inputs=*/{});
}

CompileReport TuneModel(const std::filesystem::path& model, const CompileOptions& options) {
  return ReadAndCompile(model, options, /*only_tunes=*/true);
}

}  // namespace collage
