// compile.h: the main job: a model goes in, one file that runs it at the lowest latency measured on this machine comes
// out.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/estimate.h"
#include "collage/ir/module.h"
#include "collage/runtime/tensor.h"
#include "collage/search.h"
#include "collage/target/target.h"

namespace collage {

/// What the compiler is doing, told while it works. All calls come from the thread that called CompileModel.
class CompileProgress {
 public:
  virtual ~CompileProgress() = default;
  /// A phase begins: "import", "candidates", "search", "play-off", and of programs "check".
  virtual void Phase(const std::string& name) = 0;
  /// Before the search: how many different costs there are, of which it will want some.
  virtual void Costs(int64_t /*num_distinct*/) {}
  /// Within the search: measurements done and, as far as known, wanted; what is being measured now.
  virtual void Measuring(int64_t measured, int64_t from_database, const std::string& what) = 0;
  /// Within the play-off: rounds done of all.
  virtual void PlayOff(int round, int rounds, const std::string& what) = 0;
  /// Something the user should know and can act on; each text once.
  virtual void Warn(const std::string& text) = 0;
};

/// What a compilation is asked for. A field that users may set has a row in src/driver/settings.cc, from which the
/// command line, Python, docs/settings.md and JSON follow (collage/settings.h).
struct CompileOptions {
  /// Where the executable goes.
  std::filesystem::path output;
  /// Binds dynamic inputs: name → shape.
  std::map<std::string, Shape> shapes;
  /// Threads that the executable uses, the caller included; 0 = all processors that this process may use.
  int num_threads = 0;
  /// Toolchains to consider; empty = all that are available and default (Toolchain::is_default), and those required.
  /// The native one always joins: it is the fall-back.
  std::vector<std::string> toolchains;
  /// Targets, "llvm -compiler=openvino -inference_precision=bf16": which toolchains take part, and under which options,
  /// as Relay is told (docs/toolchains.md, "Options"). A toolchain may be named several times; those in `toolchains`
  /// that no target names join as they are.
  std::vector<std::string> targets;
  /// "exact" or "standard": the option `accuracy` of every toolchain that takes part and declares it; empty = what
  /// targets and defaults say. Against what a target says it is an error.
  std::string accuracy;
  /// "any": toolchains that declare the option `inference_precision` take part once more in each lower precision that
  /// this processor computes natively, or converts where they only keep values so. Empty or "standard": as targets say.
  std::string precision;
  /// Toolchains without which compiling must fail.
  std::vector<std::string> require;
  /// Compile for this toolchain alone, by its name or "NAME -option=value …", as its own partitioning would (RFC 0.81's
  /// partition_for_NAME): what it takes in pieces as large as possible, the rest by the native one. Nothing is
  /// searched; the pieces are only checked.
  std::string partition_for;
  /// Compile the choice of partitions in this file, as written by `write_partitioning` and perhaps edited: nothing is
  /// searched.
  std::filesystem::path partitioning;
  /// Where the winner's choice of partitions is written as JSON; empty = nowhere.
  std::filesystem::path write_partitioning;
  /// Folder for what each partition of the winner is made of and compiled to: Relay, MLIR, LLVM IR, assembly, schedule
  /// and layouts (docs/debugging.md). It must be empty or not exist; empty = nowhere.
  std::filesystem::path dump;
  /// Tuning database: a file or a "postgresql://…" URL; empty = $COLLAGE_DATABASE, else ~/.cache/collage/tuning.db.
  std::string database;
  /// Where kernels find what only they read when they are timed: "near", "shared" or "memory" (see docs/costs.md);
  /// empty = as a run of this model leaves it. For experiments.
  std::string operands;
  /// Which percentile of the times of a candidate is its cost, 1 to 99. Above 50 kernels whose times vary much count
  /// for more (RFC 0.81, Drawbacks). Play-offs compare medians whatever it is.
  int percentile = 50;
  /// Where costs of candidates are from (docs/costs.md): "measure", "database", "analytic" or "mock=FILE.json".
  std::string estimator = "measure";
  /// Asked in place of `estimator` when it is given, once for each different candidate of a toolchain. What it throws
  /// ends the compilation.
  EstimateCandidate estimate;
  /// Rules that find a toolchain's candidates in place of its own: toolchain → JSON (docs/inspection.md; Relay's target
  /// attribute partition_rule).
  std::map<std::string, std::string> partition_rules;
  /// How covers are searched (docs/search.md): "sweep", "dijkstra", "astar", "dp", "evolutionary" or "exhaustive".
  std::string search = "sweep";
  /// Searches in place of `search` when it is given. May be asked again while costs change: measurements that lie near
  /// each other are repeated. Throws kInput for what it gives that is no cover; what it throws ends the compilation.
  SearchOfOnesOwn search_with;
  /// Of "evolutionary", which times its individuals end to end: seconds that it may take (as in the paper), individuals
  /// in a generation, and where its random numbers start.
  double evolution_seconds = 1800;
  int evolution_population = 50;
  uint64_t evolution_seed = 64;
  /// Seconds that measuring candidates may take. Known costs are used however small it is; 0: nothing is measured.
  double budget_seconds = std::numeric_limits<double>::infinity();
  /// At most this many measurements of candidates; empty = no limit.
  std::optional<int64_t> max_measurements;
  /// What the search for schedules, the ways in which a toolchain may compile a partition, may take: seconds, or trials
  /// that are measured (docs/costs.md, "Schedules"). Both 0: none is tried; those known to be fastest are used in any
  /// case.
  double tuning_seconds = 0;
  int64_t tuning_trials = 0;
  /// Asked before each measurement: true ends measuring, as if the budget were spent.
  std::function<bool()> should_stop;
  /// How many of the best covers enter the play-off, beside the single-toolchain ones.
  int num_covers = 2;
  /// Where a model has no more covers than this, formats told apart, all of them enter the play-off, so that it is
  /// known what the search missed (`CompileReport::optimality_loss_seconds`); 0 = never.
  int max_optimality_covers = 24;
  /// How far the results of a contestant of the play-off may be from the reference evaluation of the whole model, as a
  /// share of the largest element of each result. Empty: as far as their dtypes and what is rounded to integers on the
  /// way give reason for.
  std::optional<double> max_error;
  /// Inputs on which what is compiled is checked, beside random ones: each a value for every input, by name. Those
  /// whose names, dtypes or shapes are not the model's are refused before anything is searched.
  std::vector<std::map<std::string, Tensor>> check_inputs;
  /// A candidate that answers nothing for so long has cost Invalid.
  double candidate_timeout_seconds = 60;
  /// Memory that compiling and running a candidate may take beyond what the compiler holds; 0 = no limit.
  int64_t candidate_memory_bytes = int64_t{12} << 30;
  /// Where candidates are measured: "local", or on a Ray cluster: "ray", "ray:HOST:PORT", "ray://HOST:PORT"
  /// (docs/costs.md). Play-offs are always here.
  std::string runner = "local";
  /// The Python interpreter that speaks to Ray; empty = $COLLAGE_PYTHON, else the one that Collage was built with, else
  /// python3.
  std::string runner_python;
  CompileProgress* progress = nullptr;
};

/// One contestant of the play-off.
struct Contestant {
  std::string name;              ///< "collage", "collage-2", …, or a toolchain's name for its single cover
  bool is_single = false;        ///< a single-toolchain cover
  bool is_extra = false;         ///< chosen by no search: one of all covers there are
  double estimated_seconds = 0;  ///< sum of partitions and penalties
  double p50 = 0;                ///< seconds, measured whole, interleaved with the others
  double p90 = 0;
  double minimum = 0;
  int samples = 0;
  /// What decides: the median over rounds of its time by the mean time of those who ran in the round.
  double relative = 0;
  double first_relative = 0;  ///< the same of the first rounds, in which all ran
  bool is_finalist = false;   ///< so near the fastest in the first rounds that the final decided
  double max_error = 0;       ///< against the reference evaluation of the whole model, relative to its largest result
  std::map<std::string, int> partitions;  ///< by toolchain
  std::string failure;                    ///< why it could not take part; empty when it did
};

/// How much of the best mix may be computed in a lower precision where CompileOptions::max_error bounds what that
/// costs. Errors are end to end, each as a share of the largest element of its result.
struct BoundedMix {
  double allowed = 0;
  double best_error = 0;    ///< of the best mix of all ("collage"); infinity when it cannot be run
  int best_partitions = 0;  ///< of it, computed in a lower precision
  double error = 0;         ///< of the best mix that is off by no more than allowed: that one, or "collage-bounded"
  int partitions = 0;       ///< of that, computed in a lower precision; 0: none was found, nor would any gain
  int64_t num_built = 0;    ///< mixes whose error was measured; others were known
  double seconds = 0;       ///< that building and running them took
};

/// What a play-off's time went to.
struct PlayOffSeconds {
  double check = 0;   ///< the reference evaluation, and the runs that are compared with it
  double build = 0;   ///< from partitioned modules to loaded kernels
  double timing = 0;  ///< interleaved runs
  double write = 0;   ///< the executable, onto the disk
};

/// What the search for schedules did.
struct TuningReport {
  int64_t partitions = 0;    ///< different ones whose schedules were searched
  int64_t faster = 0;        ///< that got another schedule
  int64_t trials = 0;        ///< measured
  int64_t known_trials = 0;  ///< answered from the database
  double seconds = 0;
  double gain = 0;            ///< of the time of the covers' partitions, a share: what faster ones save
  bool budget_spent = false;  ///< there was more to try
  double trials_per_minute() const { return seconds > 0 ? 60 * static_cast<double>(trials) / seconds : 0; }
};

/// An option that targets may give a toolchain.
struct ToolchainOption {
  std::string name;
  std::string type;  ///< "a string", "an integer", "a number", "true or false"
  std::string default_value;
  std::string doc;
};

struct ToolchainReport {
  std::string name;
  bool available = false;
  std::string version;
  std::string reason;  ///< when not available
  std::string hint;
  bool takes_part = false;                                        ///< in this compilation
  std::vector<std::string> participants;                          ///< how: "NAME", or "NAME -option=value …"
  bool is_default = true;                                         ///< Toolchain::is_default
  std::string license;                                            ///< Toolchain::license
  std::vector<std::string> hooks;                                 ///< "RelayToRuntime", …: RFC 10's
  std::vector<ToolchainOption> options;                           ///< Toolchain::Options
  std::vector<std::pair<std::string, std::string>> incompatible;  ///< others of this build, and why
};

/// Calls of one operator in a program that run by reference evaluation, which is slow.
struct EvaluatedOperator {
  std::string op;
  int64_t count = 0;
  std::string node;         ///< of the model, the first one; may be empty
  std::string reason;       ///< why there is no kernel for the first one
  bool is_product = false;  ///< a contraction or convolution
};

/// Everything that was found out; what the command line prints and `--json` writes.
struct CompileReport {
  std::string model;
  int64_t num_operators = 0;
  int64_t num_parameters = 0;
  std::string machine;
  int num_threads = 0;
  std::vector<ToolchainReport> toolchains;
  /// What takes part in a lower precision because any was asked for (CompileOptions::precision).
  std::vector<std::string> precision_variants;
  std::string no_precision_variants;  ///< why there are none, where they were asked for
  int64_t num_candidates = 0;
  int64_t num_variants = 0;  ///< candidates times layouts at their boundary
  int64_t num_distinct = 0;  ///< of these, what is not equal to another
  int64_t num_measured = 0;
  int64_t num_remeasured = 0;  ///< measurements to tell apart what costs nearly the same
  int64_t num_from_database = 0;
  int64_t num_failed = 0;
  int64_t num_below_bound = 0;  ///< costs below what was taken for their bound
  bool budget_spent = false;
  int64_t num_states = 0;  ///< of the search
  TuningReport tuning;
  std::optional<BoundedMix> bounded;  ///< where the best mix computes in a lower precision, and that is bounded
  std::vector<Contestant> contestants;
  std::string winner;
  /// RFC 0.81, Drawbacks: measured minus estimated latency of the best Collage cover.
  double additive_error_seconds = 0;
  /// RFC 0.81, Drawbacks: the winner's latency minus that of each toolchain's own partitioning; seconds, by toolchain.
  std::map<std::string, double> apparent_loss_seconds;
  /// RFC 0.81, Drawbacks: the latency of the best cover that a search chose, minus that of the best of all covers,
  /// where these are few enough to be tried. Not below 0 but for noise.
  std::optional<double> optimality_loss_seconds;
  std::string optimality_loss_unknown;  ///< why not, where it was wanted; empty when it is known
  int64_t num_covers = 0;               ///< all there are; 0 when they are too many, or were not counted
  std::filesystem::path output;
  int64_t output_bytes = 0;
  double import_seconds = 0;
  double search_seconds = 0;
  double play_off_seconds = 0;
  PlayOffSeconds play_off_parts;
  double total_seconds = 0;
  /// Failures by kind, with how often and one example: the first of each kind is worth a line.
  std::map<std::string, std::pair<int64_t, std::string>> failures;
  /// For a program: the input shapes at which it was run as a whole and was right, "x=2x33"; the largest error of its
  /// results, relative to the largest element of each; and the reason if it was not run.
  std::vector<std::string> verified_sizes;
  double verified_error = 0;
  std::string not_verified;
  /// Of a program: one for each distinct region of dataflow, compiled as a model of its own; what is above are sums,
  /// and there is no play-off of the whole. Empty for models that are dataflow as a whole.
  std::vector<CompileReport> regions;
  /// For a program: operators that no kernel computes, except those that only move a few numbers.
  std::vector<EvaluatedOperator> evaluated;
};

/// Compiles the ONNX model, or the Relay text (".relay"), at `model`. A model with control flow, closures, data or
/// shapes known only at run time becomes bytecode (collage/vm/vm.h) whose regions of dataflow are each compiled as a
/// model. Throws Error; leaves nothing half-written.
CompileReport CompileModel(const std::filesystem::path& model, const CompileOptions& options);

/// The same for a module that is at hand; reports and executable call it `name`.
/// `options.shapes` must be empty: the module's shapes are known.
CompileReport CompileModule(const IRModule& module, const std::string& name, const CompileOptions& options);

/// Fills the tuning database with what `CompileModel` would measure, and stops before the play-off: the report has
/// counts of the search only, `output` is not written.
CompileReport TuneModel(const std::filesystem::path& model, const CompileOptions& options);

/// The estimators by name: what `CompileOptions::estimator` may be, and what it means.
std::vector<std::pair<std::string, std::string>> KnownEstimators();

/// The toolchains of this build and whether they can be used here.
std::vector<ToolchainReport> ProbeToolchains();

/// The vendor's version and the revision of our code for it: timings of others are not taken for this one's.
std::string TuningVersion(const ToolchainReport& toolchain);

}  // namespace collage
