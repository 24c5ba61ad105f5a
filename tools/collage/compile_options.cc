// compile_options.cc: the table.
#include "compile_options.h"

#include <fmt/format.h>

#include <charconv>

#include "collage/support/error.h"
#include "command.h"

namespace collage::cli {
namespace {

/// One option: its name, its help, and where what is written goes.
struct Row {
  const char* flag;
  const char* help;
  CLI::Option* (*add)(CLI::App& command, const Row& row, SharedArguments& arguments);
};

constexpr Row kRows[] = {
    {"--shape", "Shape of a dynamic input, NAME=1x3x640x640; may be repeated",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.shapes, row.help);
     }},
    {"--threads", "Threads to use (default: all that are allowed)",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.options.num_threads, row.help)->check(CLI::Range(1, 1024));
     }},
    {"--toolchains",
     "Only these, separated by commas (native always joins); without it those that `collage targets` says yes to",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.toolchains, row.help);
     }},
    {"--target",
     "A toolchain that takes part, and its options: \"llvm -compiler=NAME -option=value\"; \"llvm\" is native code. "
     "May "
     "be repeated; `collage targets` lists the options",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.options.targets, row.help)->allow_extra_args(false);
     }},
    {"--accuracy",
     "exact bars whatever rounds more than another order of sums does, in toolchains that have the option; standard: "
     "what they do by themselves",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.options.accuracy, row.help)->check(CLI::IsMember({"exact", "standard"}));
     }},
    {"--precision",
     "any: toolchains take part again in each lower precision that this processor computes natively, where they have "
     "one; standard: as targets say",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.options.precision, row.help)->check(CLI::IsMember({"any", "standard"}));
     }},
    {"--database",
     "Tuning database: a file, or postgresql://[USER[:PASSWORD]@]HOST[:PORT]/NAME for a team (default: "
     "$COLLAGE_DATABASE or ~/.cache/collage/tuning.db)",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.options.database, row.help);
     }},
    {"--percentile", "Percentile of a candidate's times that is its cost; above 50 against high variance",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.options.percentile, row.help)
           ->check(CLI::Range(1, 99))
           ->capture_default_str();
     }},
    {"--runner",
     "Where candidates are measured: local (default), or a Ray cluster: ray, ray:HOST:PORT, ray://HOST:PORT "
     "(docs/costs.md)",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.options.runner, row.help);
     }},
    {"--budget", "Time for measuring candidates, of all models: 90s, 10m, 1h; 0 measures nothing (default: no limit)",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.budget, row.help);
     }},
    {"--tuning-budget",
     "What trying other schedules of native kernels may take, of all models: 30s, 10m, or 200trials (default: none; "
     "those known to be fastest are used in any case)",
     [](CLI::App& command, const Row& row, SharedArguments& to) {
       return command.add_option(row.flag, to.tuning_budget, row.help);
     }},
};

/// "30s", or "200trials".
void ReadTuningBudget(const std::string& text, CompileOptions& options) {
  constexpr std::string_view kTrials = "trials";
  if (!text.ends_with(kTrials)) {
    options.tuning_seconds = ParseDuration(text);
    return;
  }
  const std::string number = text.substr(0, text.find_last_not_of(' ', text.size() - kTrials.size() - 1) + 1);
  const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), options.tuning_trials);
  if (failure != std::errc() || end != number.data() + number.size() || options.tuning_trials < 1) {
    throw Error(ErrorCategory::kInput, fmt::format("malformed tuning budget '{}'", text), "", "write 30s or 200trials");
  }
}

}  // namespace

void AddSharedOptions(CLI::App& command, SharedArguments& arguments) {
  for (const Row& row : kRows) row.add(command, row, arguments);
}

CompileOptions OptionsFrom(const SharedArguments& arguments) {
  CompileOptions options = arguments.options;
  options.shapes = ParseShapeArguments(arguments.shapes);
  options.toolchains = SplitCommas(arguments.toolchains);
  if (!arguments.budget.empty()) options.budget_seconds = ParseDuration(arguments.budget);
  ReadTuningBudget(arguments.tuning_budget, options);
  return options;
}

}  // namespace collage::cli
