// compile.h: compiles a model into one file that runs it, with the partitioning of the lowest latency measured on this
// machine.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/compile_report.h"
#include "collage/estimate.h"
#include "collage/frontend/onnx.h"
#include "collage/ir/module.h"
#include "collage/runtime/tensor.h"
#include "collage/search.h"
#include "collage/target/target.h"
#include "collage/transform/pass_context.h"
#include "collage/transform/passes.h"

namespace collage {

/// Receives progress while the compiler works. All calls come from the thread that called CompileModel.
class CompileProgress {
 public:
  virtual ~CompileProgress() = default;
  /// A phase begins: "import", "candidates", "search", "play-off", and of programs "check".
  virtual void Phase(const std::string& name) = 0;
  /// Before a search that measures candidates: the number of distinct costs; it will ask for some of them.
  virtual void Costs(int64_t /*num_distinct*/) {}
  /// Within the search: costs measured and costs found in the database so far; `what` is being measured now.
  virtual void Measuring(int64_t measured, int64_t from_database, const std::string& what) = 0;
  /// Within PackModels: partitions compiled so far; `what` compiled the last one.
  virtual void Compiling(int64_t /*compiled*/, const std::string& /*what*/) {}
  /// An executable is in its place while the search goes on: its median time, and the share by which another cover may
  /// be faster (Certificate::gap) where that is known.
  virtual void Written(double /*seconds*/, std::optional<double> /*gap*/) {}
  /// Within the play-off: rounds done of all.
  virtual void PlayOff(int round, int rounds, const std::string& what) = 0;
  /// A warning that the user can act on; each text once.
  virtual void Warn(const std::string& text) = 0;
};

/// Options of a compilation. A field that users may set has a row in src/driver/settings.cc, from which the command
/// line, Python, docs/settings.md and JSON follow (collage/settings.h).
struct CompileOptions {
  /// Executable to write.
  std::filesystem::path output;
  /// Binds inputs: name → shape, with -1 for sizes that stay as they are.
  std::map<std::string, Shape> shapes;
  /// Sizes of dimensions, by name ("sequence", or "x[0]" for one without a name): one size, or the least and the
  /// largest of a dynamic dimension. Runs refuse other sizes.
  std::map<std::string, Shape> dims;
  /// Values of inputs that are the same in every run, by name, as ImportOptions::constant_texts.
  std::map<std::string, std::string> constants;
  /// Numbers of elements of inputs that are sequences, by name; 0 for an optional input that is not there.
  std::map<std::string, Shape> lengths;
  /// Sizes of dynamic dimensions, by name ("sequence", or "x[0]" for one without a name). The model gets a plan
  /// for each combination, searched like a model of just these sizes; a run with other sizes takes the native
  /// toolchain's kernels for any size.
  std::map<std::string, Shape> tune_at;
  /// Under which conditions the passes that precede partitioning run (`PreparationSteps`), and who watches them: for a
  /// program once around all, and once more in each region.
  PassContext pass_context{kPreparationLevel};
  /// Threads that the executable uses, the caller included; 0 = all processors that this process may use.
  int num_threads = 0;
  /// Toolchains to consider; empty = all that are available and default (Toolchain::is_default), and those required.
  /// The native one always joins: it is the fall-back.
  std::vector<std::string> toolchains;
  /// Targets, "llvm -compiler=openvino -inference_precision=bf16": which toolchains take part, and under which options,
  /// in Relay's syntax (docs/toolchains.md, "Options"). A toolchain may be named several times. Names in `toolchains`
  /// that no target has join without options.
  std::vector<std::string> targets;
  /// "exact" or "standard": the option `accuracy` of every toolchain that takes part and declares it; empty: as targets
  /// and defaults say. A value that contradicts a target is an error.
  std::string accuracy;
  /// "any": toolchains that declare the option `inference_precision` take part once more in each lower precision that
  /// this processor computes natively, or converts where they only keep values so. Empty or "standard": as targets say.
  std::string precision;
  /// Toolchains without which compiling must fail.
  std::vector<std::string> require;
  /// Compile for this toolchain alone, by its name or "NAME -option=value …", as its own partitioning would (RFC 0.81's
  /// partition_for_NAME): it takes the largest partitions that it can, and the native toolchain takes the rest. Nothing
  /// is searched; the partitions are only checked.
  std::string partition_for;
  /// Compile the choice of partitions in this file, as `write_partitioning` writes it; nothing is searched.
  std::filesystem::path partitioning;
  /// Files like `partitioning` whose choices enter the play-off beside the covers that are found.
  std::vector<std::filesystem::path> also;
  /// File for the winner's choice of partitions, as JSON; empty = none.
  std::filesystem::path write_partitioning;
  /// File for the partitioned module of the winner, as Relay text (RFC 0.81, phase 4); empty = none.
  std::filesystem::path write_module;
  /// Folder for the parts and the code of each partition of the winner: Relay, MLIR, LLVM IR, assembly, schedule and
  /// layouts (docs/debugging.md). It must be empty or not exist; empty = nowhere.
  std::filesystem::path dump;
  /// Place for what explains the result (docs/explanation.md): "inside" of the executable, "none", or a JSON file.
  std::string explanation = "inside";
  /// Tuning database: a file or a "postgresql://…" URL; empty = $COLLAGE_DATABASE, else ~/.cache/collage/tuning.db.
  std::string database;
  /// Cache level of the operands that only one kernel reads, when it is timed: "near", "shared" or "memory" (see
  /// docs/costs.md); empty = as a run of this model leaves them. For experiments.
  std::string operands;
  /// The percentile of a candidate's times that is its cost, 1 to 99. Above 50, kernels whose times vary much cost more
  /// (RFC 0.81, Drawbacks). Play-offs always compare medians.
  int percentile = 50;
  /// Source of candidates' costs (docs/search-options.md): "measure", "database", "analytic" or "mock=FILE.json".
  std::string estimator = "measure";
  /// Called in place of `estimator` if given, once for each different candidate. An exception ends the compilation.
  EstimateCandidate estimate;
  /// Rules that find a toolchain's candidates in place of its own: toolchain → JSON (docs/inspection.md; Relay's target
  /// attribute partition_rule).
  std::map<std::string, std::string> partition_rules;
  /// How covers are searched (docs/search.md): "sweep", "dijkstra", "astar", "dp", "evolutionary" or "exhaustive".
  std::string search = "sweep";
  /// Searches in place of `search` when it is given. May be asked again while costs change: measurements that lie near
  /// each other are repeated. Throws kInput for a result that is no cover; its own exceptions end the compilation.
  CustomSearch search_with;
  /// Options of "evolutionary": time limit in seconds (as in the paper), individuals in a generation, and seed.
  double evolution_seconds = 1800;
  int evolution_population = 50;
  uint64_t evolution_seed = 64;
  /// Seconds for all: three quarters for measuring candidates (0: only known costs), the rest for the play-off.
  double budget_seconds = std::numeric_limits<double>::infinity();
  /// The search ends once Certificate::gap is no more than this; empty: where differences are noise.
  std::optional<double> until;
  /// At most this many measurements of candidates; empty = no limit.
  std::optional<int64_t> max_measurements;
  /// Limits of the search for schedules, the ways in which a toolchain may compile a partition: seconds, or measured
  /// trials (docs/costs.md, "Schedules"). Both 0: none is tried; the fastest known ones are used in any case.
  double tuning_seconds = 0;
  int64_t tuning_trials = 0;
  /// Asked before each measurement and now and then later: true ends the search, and the best known cover is written.
  std::function<bool()> should_stop;
  /// How many of the best covers enter the play-off, beside the single-toolchain ones.
  int num_covers = 2;
  /// If a model has at most this many covers, counting formats, all of them enter the play-off, which tells how far the
  /// search was from the best (`CompileReport::optimality_loss_seconds`); 0 = never.
  int max_optimality_covers = 24;
  /// Largest accepted difference of a contender's results from the reference evaluation of the whole model, as a share
  /// of the largest element of each result. Empty: the tolerance that follows from dtypes and rounding to integers.
  std::optional<double> max_error;
  /// Inputs for correctness checks, beside random ones: each a value for every input, by name. Inputs whose names,
  /// dtypes or shapes are not the model's are refused before the search.
  std::vector<std::map<std::string, Tensor>> check_inputs;
  /// A candidate that does not answer within this time has cost Invalid.
  double candidate_timeout_seconds = 60;
  /// Memory that compiling and running a candidate may take beyond what the compiler holds; 0 = no limit.
  int64_t candidate_memory_bytes = int64_t{12} << 30;
  /// Place at which candidates are measured: "local", or a Ray cluster: "ray", "ray:HOST:PORT", "ray://HOST:PORT"
  /// (docs/many-machines.md). Play-offs are always on this machine.
  std::string runner = "local";
  /// The Python that speaks to Ray; empty = $COLLAGE_PYTHON, else the one that Collage was built with, else python3.
  std::string runner_python;
  /// Compile for another machine (empty: for this one), by the name that `collage measure` gave it: its costs are known
  /// ones of the database only, and nothing is run here, no candidates and no executable (docs/many-machines.md).
  std::string machine;
  /// Seconds after which the best cover so far is first written; large models have one before anything is measured.
  double first_checkpoint_seconds = 3;
  CompileProgress* progress = nullptr;
  /// Set by CompileModel: called with the executable, not named `output` yet, and a report of all that is over.
  std::function<void(const CompileReport& report, const std::filesystem::path& written)> on_written;
  /// Set for the regions of a program: called with each executable that is written before the search has ended.
  std::function<void(const std::filesystem::path& written)> on_checkpoint;
  /// Set by PackModels (collage/measuring_pack.h) for packs of candidates: these are compiled, nothing else.
  bool packs = false;

  /// Whether kernels run on another machine: libraries and devices need not be here.
  bool runs_elsewhere() const { return packs || !machine.empty(); }
};

/// Returns how a model is imported that is compiled with `options`.
ImportOptions ImportOptionsOf(const CompileOptions& options);

/// Compiles the ONNX model, or the Relay text (".relay"), at `model`. A model with control flow, closures, data or
/// shapes known only at run time becomes bytecode (collage/vm/vm.h), whose static graphs are each compiled as a model.
/// Throws Error; leaves nothing half-written.
CompileReport CompileModel(const std::filesystem::path& model, const CompileOptions& options);

/// Compiles a module in memory; reports and executable call it `name`. `options.shapes` must be empty: the module's
/// shapes are known.
CompileReport CompileModule(const IRModule& module, const std::string& name, const CompileOptions& options);

/// Fills the tuning database with the costs that `CompileModel` would measure, and stops before the play-off. The
/// report has counts of the search only; `output` is not written.
CompileReport TuneModel(const std::filesystem::path& model, const CompileOptions& options);

/// Returns the values of `CompileOptions::estimator`, each with its meaning.
std::vector<std::pair<std::string, std::string>> KnownEstimators();

/// The toolchains of this build and whether they can be used here.
std::vector<ToolchainReport> ProbeToolchains();

/// The vendor's version and the revision of our code for it: timings of others are not taken for this one's.
std::string TuningVersion(const ToolchainReport& toolchain);

}  // namespace collage
