// settings.cc: the table; setting_values.cc has what works on any of its rows.
#include "collage/settings.h"

#include "driver/setting_types.h"
#include "search/strategies/cover_search.h"

namespace collage {
namespace {

using Options = CompileOptions;
using enum SettingCommands;
using enum SettingNeeds;

constexpr int kMostThreads = 1024;
constexpr int kMostCovers = 16;
constexpr int kMostOptimalityCovers = 1000;
constexpr int kMostIndividuals = 10000;

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const SearchStrategy& strategy : SearchStrategies()) names.emplace_back(strategy.name);
  return names;
}

std::vector<Setting> ModelSettings() {
  return {
      {.name = "shapes",
       .flag = "--shape",
       .group = "Model",
       .commands = kCompileAndTune,
       .type = Shapes(&Options::shapes),
       .doc = "Shape of a dynamic input; ? (in Python -1) for a size that stays as it is.",
       .unset = "dynamic sizes stay symbolic",
       .page = "support.md#dynamic-shapes"},
      {.name = "dims",
       .flag = "--dim",
       .group = "Model",
       .commands = kCompileAndTune,
       .type = Dimensions(&Options::dims),
       .doc = "Size of a dimension in all inputs, or the range of its sizes: runs refuse others. A dimension without a "
              "name is called `INPUT[AXIS]`, and so may be one that the model gives a size.",
       .unset = "dynamic sizes stay symbolic, and may be any",
       .page = "support.md#dynamic-shapes"},
      {.name = "constants",
       .flag = "--constant",
       .group = "Model",
       .commands = kCompileAndTune,
       .type = Constants(&Options::constants),
       .doc =
           "Value of an input that is the same in every run, which is an input no more: a number, numbers separated by "
           "commas, or a file (.npy, .pb).",
       .unset = "all inputs are given in a run",
       .page = "support.md#dynamic-shapes"},
      {.name = "lengths",
       .flag = "--length",
       .group = "Model",
       .commands = kCompileAndTune,
       .type = Lengths(&Options::lengths),
       .doc = "Number of elements of an input that is a sequence: x becomes the inputs x.0, x.1 and so on. 0 leaves an "
              "optional input out.",
       .unset = "as many elements as `--shape` and `--constant` name",
       .page = "support.md#sequences-and-optional-values"},
  };
}

std::vector<Setting> RunSettings() {
  return {
      {.name = "tune_at",
       .flag = "--tune-at",
       .group = "Model",
       .commands = kCompileAndTune,
       .type = Sizes(&Options::tune_at),
       .doc = "Sizes of a dynamic dimension. Each combination gets a plan of its own, for which all toolchains "
              "are searched; a dimension without a name is called `INPUT[AXIS]`.",
       .unset = "only kernels for any size",
       .page = "support.md#dynamic-shapes"},
      {.name = "threads",
       .flag = "--threads",
       .group = "Model",
       .commands = kCompileAndTune,
       .type = Integer(&Options::num_threads, 1, kMostThreads),
       .doc = "Threads that the executable uses.",
       .unset = "all processors that this process may use",
       .page = "performance.md#choose-the-threads"},
  };
}

std::vector<Setting> ToolchainSettings() {
  return {
      {.name = "toolchains",
       .flag = "--toolchains",
       .group = "Toolchains",
       .commands = kCompileAndTune,
       .type = Names(&Options::toolchains),
       .doc = "Use only these toolchains. Collage's native kernels always take part.",
       .unset = "those that `collage targets` lists as available",
       .page = "toolchains.md"},
      {.name = "target",
       .flag = "--target",
       .group = "Toolchains",
       .commands = kCompileAndTune,
       .type = Texts(&Options::targets, "TARGET", "targets, such as \"llvm -compiler=NAME\""),
       .doc = "A toolchain that takes part, with its options: `llvm -compiler=NAME -option=value`; `llvm` is native "
              "code. `collage targets` lists the options.",
       .unset = "toolchains have their default options",
       .python_type = "Targets",
       .page = "toolchains.md#options"},
  };
}

std::vector<Setting> PrecisionSettings() {
  return {
      {.name = "accuracy",
       .flag = "--accuracy",
       .group = "Toolchains",
       .commands = kCompileAndTune,
       .type = Word(&Options::accuracy, {"exact", "standard"}),
       .doc = "`exact`: no algorithms that lose accuracy to save work (Winograd, Strassen). `standard`: allow them.",
       .unset = "as targets say, else standard",
       .page = "toolchains.md#options"},
      {.name = "precision",
       .flag = "--precision",
       .group = "Toolchains",
       .commands = kCompileAndTune,
       .needs = kSearch,
       .type = Word(&Options::precision, {"any", "standard"}),
       .doc = "`any`: also try bfloat16 and float16 versions, if this CPU has them; use with --max-error.",
       .unset = "as targets say",
       .page = "performance.md#lower-precision"},
      {.name = "require",
       .flag = "--require",
       .group = "Toolchains",
       .type = Names(&Options::require),
       .doc = "Fail unless a kernel of each of these toolchains runs in the model, correctly.",
       .unset = "none"},
      {.name = "partition_rules",
       .flag = "--partition-rule",
       .group = "Toolchains",
       .needs = kSearch,
       .type = Rules(&Options::partition_rules),
       .doc = "Find a toolchain's candidates by this rule, JSON or a file of it, instead of the toolchain's own rules.",
       .unset = "each toolchain's own rules",
       .page = "inspection.md#rules"},
  };
}

std::vector<Setting> PassSettings() {
  return {
      {.name = "opt_level",
       .flag = "--opt-level",
       .group = "Passes",
       .commands = kCompileAndTune,
       .type = PassLevel(0, 9),
       .doc = "Prepare the model by passes up to this level. 4: also join parallel convolutions and dense layers.",
       .page = "python.md#passes"},
      {.name = "required_pass",
       .flag = "--require-pass",
       .group = "Passes",
       .commands = kCompileAndTune,
       .type = PassNames(&PassContext::required_pass),
       .doc = "Run these passes at every optimisation level.",
       .unset = "none"},
      {.name = "disabled_pass",
       .flag = "--disable-pass",
       .group = "Passes",
       .commands = kCompileAndTune,
       .type = PassNames(&PassContext::disabled_pass),
       .doc = "Do not run these passes. `collage opt --list` lists all passes and their options.",
       .unset = "none"},
      {.name = "config",
       .flag = "--config",
       .group = "Passes",
       .commands = kCompileAndTune,
       .type = PassOptions(),
       .doc = "Set an option of a pass.",
       .unset = "options have their defaults"},
  };
}

std::vector<Setting> PartitionSettings() {
  return {
      {.name = "partition_for",
       .flag = "--partition-for",
       .group = "Partitions",
       .needs = kSearch,
       .type = Text(&Options::partition_for, "TOOLCHAIN", "a toolchain"),
       .doc =
           "Do not search: this toolchain gets all operators that it takes, in pieces as large as possible, and native "
           "kernels the rest.",
       .unset = "search"},
      {.name = "partitioning",
       .flag = "--partitioning",
       .group = "Partitions",
       .needs = kSearch,
       .type = Path(&Options::partitioning, "FILE.json", /*must_exist=*/true),
       .doc = "Do not search: use the partitions in this file, which --write-partitioning wrote.",
       .unset = "search",
       .page = "file-formats.md#partitionings"},
      {.name = "also",
       .flag = "--also",
       .group = "Partitions",
       .needs = kSearch,
       .type = Paths(&Options::also, "FILE.json"),
       .doc = "Time the partitions in this file, too, as a whole model: the result is never slower than they are.",
       .unset = "none",
       .page = "file-formats.md#partitionings"},
  };
}

std::vector<Setting> FileSettings() {
  return {
      {.name = "write_partitioning",
       .flag = "--write-partitioning",
       .group = "Partitions",
       .needs = kSearch,
       .type = Path(&Options::write_partitioning, "FILE.json", /*must_exist=*/false),
       .doc = "Write the fastest partitions found as JSON, which can be edited and given to --partitioning.",
       .unset = "not written",
       .page = "file-formats.md#partitionings"},
      {.name = "write_module",
       .flag = "--write-module",
       .group = "Partitions",
       .needs = kSearch,
       .type = Path(&Options::write_module, "FILE.relay", /*must_exist=*/false),
       .doc = "Write the module of the fastest partitions as Relay text.",
       .unset = "not written",
       .page = "file-formats.md#partitioned-modules"},
      {.name = "dump",
       .flag = "--dump",
       .group = "Partitions",
       .type = Path(&Options::dump, "FOLDER", /*must_exist=*/false),
       .doc = "Write each partition's Relay, MLIR, LLVM IR, assembly, schedule and layouts into this new folder.",
       .unset = "not written",
       .page = "debugging.md#a-native-kernel"},
      {.name = "explanation",
       .flag = "--explanation",
       .group = "Partitions",
       .type = Text(&Options::explanation, "inside|none|FILE.json", "inside, none or a path"),
       .doc = "Keep what `collage explain` tells `inside` the executable, where no run reads it, in a file, or nowhere "
              "(`none`).",
       .page = "explanation.md"},
  };
}

std::vector<Setting> CostSettings() {
  return {
      {.name = "database",
       .flag = "--database",
       .group = "Costs",
       .commands = kCompileAndTune,
       .type = Text(&Options::database, "FILE|URL", "a file or a URL"),
       .doc = "Tuning database: a file, or `postgresql://[USER[:PASSWORD]@]HOST[:PORT]/NAME` to share costs in a team.",
       .unset = "$COLLAGE_DATABASE, else ~/.cache/collage/tuning.db",
       .python_type = "str | os.PathLike[str]",
       .page = "many-machines.md#share-a-tuning-database"},
      {.name = "machine",
       .flag = "--machine",
       .group = "Costs",
       .needs = kSearch,
       .type = Text(&Options::machine, "NAME", "the name of a machine"),
       .doc =
           "Compile for another machine, whose costs `collage measure` brought into the database. Nothing is run here: "
           "the executable is written without a check.",
       .unset = "this machine",
       .page = "many-machines.md#measure-on-a-machine-that-compiles-nothing"},
      {.name = "budget",
       .flag = "--budget",
       .group = "Costs",
       .commands = kCompileAndTune,
       .type = Duration(&Options::budget_seconds),
       .doc = "Time for the compilation, all models together: 90s, 10m, 1h. Three quarters are for measuring "
              "candidates, the rest is for timing whole models. 0 measures no candidates and uses known costs.",
       .unset = "no limit",
       .page = "performance.md#give-the-search-time"},
      {.name = "until",
       .flag = "--until",
       .group = "Costs",
       .needs = kSearch,
       .type = Fraction(&Options::until),
       .doc = "Stop measuring once no mix of these candidates can be faster than the best one by more than this: 5%.",
       .unset = "until no better mix can be told from the best one",
       .page = "performance.md#give-the-search-time"},
      {.name = "max_measurements",
       .flag = "--trials",
       .group = "Costs",
       .commands = kCompileAndTune,
       .needs = kSearch,
       .type = Count(&Options::max_measurements),
       .doc = "Measure at most this many candidates, all models together. 0 measures nothing and uses known costs.",
       .unset = "no limit"},
  };
}

std::vector<Setting> CandidateSettings() {
  return {
      {.name = "candidate_timeout",
       .flag = "--candidate-timeout",
       .group = "Costs",
       .commands = kCompileAndTune,
       .type = Duration(&Options::candidate_timeout_seconds),
       .doc = "Give up a candidate that does not answer for this long."},
      {.name = "candidate_memory",
       .flag = "--candidate-memory",
       .group = "Costs",
       .commands = kCompileAndTune,
       .type = Bytes(&Options::candidate_memory_bytes),
       .doc = "Memory that compiling and running a candidate may take; one that needs more fails. 0: no limit."},
      {.name = "estimator",
       .flag = "--estimator",
       .group = "Costs",
       .needs = kSearch,
       .type = Text(&Options::estimator, "NAME", "a source of costs"),
       .doc = "Source of costs: `measure`, `database` (fail if some are missing), `analytic` (a formula), "
              "`mock=FILE.json` (a table).",
       .python_type = "str | CostEstimator | Estimate",
       .python_doc = "Also a name of `collage.register_estimator`, a `collage.CostEstimator`, or a callable like its "
                     "``estimate``.",
       .page = "search-options.md#estimators"},
  };
}

std::vector<Setting> TimingSettings() {
  return {
      {.name = "percentile",
       .flag = "--percentile",
       .group = "Costs",
       .commands = kCompileAndTune,
       .needs = kSearch,
       .type = Integer(&Options::percentile, 1, 99),
       .doc = "Which percentile of its times is a candidate's cost. Above 50, kernels with varying times cost more.",
       .page = "costs.md#samples-intervals-and-throttling"},
      {.name = "operands",
       .flag = "--operands",
       .group = "Costs",
       .needs = kSearch,
       .type = Word(&Options::operands, {"near", "shared", "memory"}),
       .doc = "For experiments: where operands are when kernels are timed: `near` (the core's caches), `shared` (the "
              "last-level cache) or `memory`.",
       .unset = "where a run of the model leaves them",
       .page = "costs.md#caches-as-in-a-run-of-the-model"},
      {.name = "runner",
       .flag = "--runner",
       .group = "Costs",
       .commands = kCompileAndTune,
       .needs = kSearch,
       .type = Text(&Options::runner, "PLACE", "local, or a Ray cluster"),
       .doc =
           "The place that measures candidates: `local`, or a Ray cluster: `ray`, `ray:HOST:PORT`, `ray://HOST:PORT`. "
           "Whole models are always timed on this machine.",
       .page = "many-machines.md#measure-on-a-ray-cluster"},
  };
}

std::vector<Setting> SearchSettings() {
  return {
      {.name = "search",
       .flag = "--search",
       .group = "Search",
       .needs = kSearch,
       .type = Word(&Options::search, StrategyNames()),
       .doc = "How covers are searched: `sweep`, `dijkstra`, `astar`, `dp`, `evolutionary`, or `exhaustive` for small "
              "models.",
       .python_type = "str | Search",
       .python_doc = "Also a callable that gets a `collage.SearchTask` and returns covers, lists of candidates, the "
                     "best first.",
       .page = "search-options.md#strategies"},
      {.name = "covers",
       .flag = "--covers",
       .group = "Search",
       .needs = kSearch,
       .type = Integer(&Options::num_covers, 1, kMostCovers),
       .doc = "How many of the best partitionings are timed as whole models."},
      {.name = "optimality_covers",
       .flag = "--optimality-covers",
       .group = "Search",
       .needs = kSearch,
       .type = Integer(&Options::max_optimality_covers, 0, kMostOptimalityCovers),
       .doc = "Small models: if at most this many partitionings exist, time them all and report how far the search was "
              "from the best. 0: never.",
       .page = "costs.md#what-additive-costs-miss"},
      {.name = "tuning_budget",
       .flag = "--tuning-budget",
       .group = "Search",
       .commands = kCompileAndTune,
       .needs = kSearch,
       .type = TuningBudget(&Options::tuning_seconds, &Options::tuning_trials),
       .doc = "Extra time for trying other loop orders of native kernels, all models together: 30s, 10m, or 200trials. "
              "Earlier finds are always reused.",
       .page = "costs.md#schedules"},
  };
}

std::vector<Setting> EvolutionSettings() {
  return {
      {.name = "evolution_budget",
       .flag = "--evolution-budget",
       .group = "Search",
       .needs = kSearch,
       .type = Duration(&Options::evolution_seconds),
       .doc = "Time for the search `evolutionary`, which times whole models.",
       .page = "search-options.md#strategies"},
      {.name = "evolution_population",
       .flag = "--evolution-population",
       .group = "Search",
       .needs = kSearch,
       .type = Integer(&Options::evolution_population, 2, kMostIndividuals),
       .doc = "Individuals in a generation of the search `evolutionary`.",
       .page = "search-options.md#strategies"},
      {.name = "evolution_seed",
       .flag = "--evolution-seed",
       .group = "Search",
       .needs = kSearch,
       .type = Integer(&Options::evolution_seed),
       .doc = "Seed of the random numbers of the search `evolutionary`.",
       .page = "search-options.md#strategies"},
  };
}

std::vector<Setting> CorrectnessSettings() {
  return {
      {.name = "max_error",
       .flag = "--max-error",
       .group = "Correctness",
       .needs = kSearch,
       .type = Fraction(&Options::max_error),
       .doc = "Reject results that differ from the reference by more than this fraction of the largest output value.",
       .unset = "depends on the dtype",
       .page = "performance.md#lower-precision"},
      {.name = "check_inputs",
       .flag = "--check-inputs",
       .group = "Correctness",
       .type = Inputs(&Options::check_inputs),
       .doc = "Check results on these inputs, too: an .npz file with an array for every input.",
       .unset = "random inputs only",
       .python_type = "CheckInputs | Sequence[CheckInputs]",
       .python_doc = "Also arrays by the names of inputs, or a list of such."},
  };
}

std::vector<Setting> AllSettings() {
  std::vector<Setting> all;
  for (const auto& part : {ModelSettings(), RunSettings(), ToolchainSettings(), PrecisionSettings(), PassSettings(),
                           PartitionSettings(), FileSettings(), CostSettings(), CandidateSettings(), TimingSettings(),
                           SearchSettings(), EvolutionSettings(), CorrectnessSettings()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

std::span<const Setting> Settings() {
  static const std::vector<Setting> settings = AllSettings();
  return settings;
}

}  // namespace collage
