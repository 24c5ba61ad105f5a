// settings.cc: the table, and what works on any of its rows.
#include "collage/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "collage/support/error.h"
#include "driver/setting_types.h"
#include "search/strategies/cover_search.h"
#include "support/argument_text.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;
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
       .doc = "Shape of a dynamic input.",
       .unset = "dynamic sizes stay symbolic",
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
       .doc =
           "A toolchain that takes part, with its options: `llvm -compiler=NAME -option=value`; `llvm` is native code. "
           "`collage targets` lists the options.",
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
      {.name = "budget",
       .flag = "--budget",
       .group = "Costs",
       .commands = kCompileAndTune,
       .needs = kSearch,
       .type = Duration(&Options::budget_seconds),
       .doc =
           "Time for measuring candidates, all models together: 90s, 10m, 1h. 0 measures nothing and uses known costs.",
       .unset = "no limit",
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
       .doc =
           "Memory that compiling and running a candidate may take; a candidate that needs more fails. 0: no limit."},
      {.name = "estimator",
       .flag = "--estimator",
       .group = "Costs",
       .needs = kSearch,
       .type = Text(&Options::estimator, "NAME", "a source of costs"),
       .doc = "Source of costs: `measure`, `database` (fail if some are missing), `analytic` (a formula), "
              "`mock=FILE.json` "
              "(a table).",
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
       .python_doc =
           "Also a callable that gets a `collage.SearchTask` and returns covers, lists of candidates, the best "
           "first.",
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
              "from "
              "the best. 0: never.",
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
  for (const auto& part :
       {ModelSettings(), ToolchainSettings(), PrecisionSettings(), PartitionSettings(), FileSettings(), CostSettings(),
        CandidateSettings(), TimingSettings(), SearchSettings(), EvolutionSettings(), CorrectnessSettings()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

const CompileOptions& Defaults() {
  static const CompileOptions defaults;
  return defaults;
}

/// JSON of a value.
struct ToJson {
  Json operator()(std::monostate /*none*/) const { return nullptr; }
  Json operator()(double number) const {
    return std::isfinite(number) ? Json(number) : Json(fmt::format("{}", number));
  }
  Json operator()(const std::vector<std::map<std::string, Tensor>>& inputs) const {
    Json all = Json::array();
    for (const auto& one : inputs) {
      Json types = Json::object();
      for (const auto& [name, tensor] : one) {
        types[name] = {{"shape", tensor.shape()}, {"dtype", tensor.dtype().ToString()}};
      }
      all.push_back(types);
    }
    return all;
  }
  template <typename T>
  Json operator()(const T& value) const {
    return value;
  }
};

Json ValueJson(const CompileOptions& options, const Setting& setting) {
  return std::visit(ToJson(), setting.type.get(options));
}

/// A default as Python's signature shows it.
std::string PythonDefault(const Setting& setting) {
  if (!setting.unset.empty()) return "None";
  const Json value = ValueJson(Defaults(), setting);
  return value.is_string() || value.is_number_float() ? fmt::format("'{}'", DefaultText(setting)) : value.dump();
}

}  // namespace

std::span<const Setting> Settings() {
  static const std::vector<Setting> settings = AllSettings();
  return settings;
}

const Setting& FindSetting(std::string_view name) {
  std::vector<std::string> names;
  for (const Setting& setting : Settings()) {
    if (setting.name == name) return setting;
    names.push_back(setting.name);
  }
  const std::vector<std::string> near = NearMisses(name, names);
  throw Error(ErrorCategory::kInput, fmt::format("there is no setting '{}'", name), "",
              near.empty() ? "docs/settings.md lists them all" : fmt::format("did you mean '{}'?", near[0]));
}

void SetSetting(CompileOptions& options, const Setting& setting, const SettingValue& value, const std::string& where) {
  try {
    if (std::holds_alternative<std::monostate>(value)) return setting.type.reset(options);
    setting.type.set(options, value);
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), error.where().empty() ? where : error.where(), error.hint());
  }
}

void SetSettingFromText(CompileOptions& options, const Setting& setting, const std::vector<std::string>& texts) {
  SettingValue value;
  try {
    value = setting.type.parse(texts);
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), error.where().empty() ? setting.flag : error.where(), error.hint());
  }
  SetSetting(options, setting, value, setting.flag);
}

bool IsDefault(const CompileOptions& options, const Setting& setting) {
  return ValueJson(options, setting) == ValueJson(Defaults(), setting);
}

void CheckSettings(const CompileOptions& options) {
  CompileOptions checked;
  for (const Setting& setting : Settings()) {
    if (!IsDefault(options, setting)) SetSetting(checked, setting, setting.type.get(options), setting.flag);
  }
}

std::string DefaultText(const Setting& setting) {
  if (!setting.unset.empty()) return setting.unset;
  const SettingValue value = setting.type.get(Defaults());
  if (const double* seconds = std::get_if<double>(&value)) return FormatDuration(*seconds);
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return ValueJson(Defaults(), setting).dump();
}

std::string SettingsJson(const CompileOptions& options) {
  Json all = Json::object();
  for (const Setting& setting : Settings()) {
    const bool is_unset = !setting.unset.empty() && IsDefault(options, setting);
    all[setting.name] = is_unset ? Json() : ValueJson(options, setting);
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string SettingsTableJson() {
  Json rows = Json::array();
  for (const Setting& setting : Settings()) {
    Json commands = {"compile"};
    if (setting.commands == kCompileAndTune) commands.push_back("tune");
    rows.push_back({{"name", setting.name},
                    {"flag", setting.flag},
                    {"group", setting.group},
                    {"commands", commands},
                    {"values", setting.type.values},
                    {"placeholder", setting.type.placeholder},
                    {"repeated", setting.type.is_repeated},
                    {"default", DefaultText(setting)},
                    {"doc", setting.doc},
                    {"page", setting.page},
                    {"python",
                     {{"type", setting.python_type.empty() ? setting.type.python : setting.python_type},
                      {"default", PythonDefault(setting)},
                      {"optional", !setting.unset.empty()},
                      {"doc", setting.python_doc}}}});
  }
  return rows.dump(2);
}

}  // namespace collage
