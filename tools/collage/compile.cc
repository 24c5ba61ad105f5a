// compile.cc: `collage compile`: the main job, its progress and its report.
#include "collage/compile.h"

#include <fmt/format.h>

#include "collage/support/error.h"
#include "command.h"
#include "compile_options.h"
#include "console_progress.h"
#include "inspect_input.h"
#include "report/compile_facts.h"
#include "runtime/npy.h"

namespace collage::cli {
namespace {

struct Arguments {
  SharedArguments shared;
  std::string model;
  std::string require;
  std::string evolution_budget = "30m";
  std::vector<std::string> partition_rules;
  std::vector<std::string> check_inputs;
  bool json = false;
  bool details = false;
  bool quiet = false;
};

void Run(const Arguments& arguments) {
  CompileOptions options = OptionsFrom(arguments.shared);
  options.require = SplitCommas(arguments.require);
  for (const std::string& text : arguments.partition_rules) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCategory::kInput, fmt::format("malformed rule '{}'", text), "--partition-rule",
                  "write TOOLCHAIN=FILE.json or TOOLCHAIN={…}");
    }
    const JsonText rule = ReadJsonArgument(text.substr(equals + 1), "--partition-rule");
    options.partition_rules[text.substr(0, equals)] = rule.text;
  }
  for (const std::string& file : arguments.check_inputs) options.check_inputs.push_back(ReadNpz(file));
  options.evolution_seconds = ParseDuration(arguments.evolution_budget);
  if (options.output.empty()) options.output = std::filesystem::path(arguments.model).stem().string() + ".clg";
  CompileReport report;
  {
    ConsoleProgress progress(arguments.quiet, options.budget_seconds);
    options.progress = &progress;
    report = CompileModel(arguments.model, options);
  }
  PrintReport(CompileFacts(report), arguments.json, {.details = arguments.details});
}

/// Partitions that are given, written or shown.
void AddPartitionOptions(CLI::App& command, CompileOptions& options) {
  command.add_option("--partition-for", options.partition_for,
                     "No search: all that this toolchain takes in pieces as large as possible, the rest natively");
  command
      .add_option("--partitioning", options.partitioning,
                  "No search: the partitions that this file chooses, see --write-partitioning")
      ->check(CLI::ExistingFile);
  command.add_option("--write-partitioning", options.write_partitioning,
                     "Write which partitions won, as JSON that can be edited and given to --partitioning");
  command.add_option(
      "--dump", options.dump,
      "Write each partition's Relay, MLIR, LLVM IR, assembly, schedule and layouts into this new folder");
}

void AddReportFlags(CLI::App& command, Arguments& arguments) {
  command.add_flag("--json", arguments.json, "Print the report as JSON");
  command.add_flag("--details", arguments.details, "Print also the facts that only --json has otherwise");
  command.add_flag("--quiet", arguments.quiet, "No progress");
}

}  // namespace

void AddCompileCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CompileOptions& options = arguments->shared.options;
  CLI::App* command = app.add_subcommand("compile", "Find the fastest mix of toolchains for a model and write it");
  command->add_option("model", arguments->model, "ONNX model, or Relay text (.relay)")->required();
  command->add_option("-o,--output", options.output, "Executable to write (default: MODEL.clg)");
  AddSharedOptions(*command, arguments->shared);
  AddPartitionOptions(*command, options);
  command->add_option("--require", arguments->require, "Fail unless these toolchains are available");
  command->add_option(
      "--operands", options.operands,
      "Time kernels with their operands in: near (warm), shared, memory (default: as the model leaves them)");
  command->add_option(
      "--estimator", options.estimator,
      "Where costs are from (docs/costs.md): measure (default), database (fails when some are missing), "
      "analytic (a formula), mock=FILE.json (a table)");
  command->add_option("--partition-rule", arguments->partition_rules,
                      "TOOLCHAIN=RULE: its candidates by a rule, JSON or a file (docs/inspection.md); may be repeated");
  command->add_option(
      "--search", options.search,
      "How covers are searched: sweep (default), dijkstra, astar, dp, evolutionary; exhaustive for small models");
  command->add_option("--evolution-budget", arguments->evolution_budget,
                      "Time for --search evolutionary, which times its individuals end to end (default: 30m)");
  command->add_option("--evolution-population", options.evolution_population, "Individuals in a generation")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  command->add_option("--evolution-seed", options.evolution_seed, "Where its random numbers start")
      ->capture_default_str();
  command->add_option("--covers", options.num_covers, "Best covers that enter the play-off (default: 2)")
      ->check(CLI::Range(1, 16));
  command
      ->add_option(
          "--optimality-covers", options.max_optimality_covers,
          "Where there are no more covers than this, all enter the play-off: what the search missed (0: never)")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command
      ->add_option("--max-error", options.max_error,
                   "Contestants may be off by this share of each result's largest element (default: as their dtypes "
                   "and rounding to integers give reason for)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option(
          "--check-inputs", arguments->check_inputs,
          "An .npz with a value for every input: what is compiled is checked on these, beside random ones; may "
          "be repeated")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false);
  AddReportFlags(*command, *arguments);
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
