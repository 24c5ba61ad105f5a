// targets.cc: `collage targets`: each toolchain, whether it can be used here, or why not; with --support, what it takes
// of a model, or why not; with --table, what it takes at all.
#include <algorithm>

#include "collage/compile.h"
#include "collage/operator_table.h"
#include "collage/support/error.h"
#include "collage/support_report.h"
#include "command.h"
#include "inspect_input.h"
#include "report/toolchain_facts.h"
#include "runtime/known_devices.h"

namespace collage::cli {
namespace {

struct Arguments {
  InspectArguments model;
  std::string toolchains;
  bool json = false;
  bool table = false;
  std::string operators, dtypes;
  int num_calls = 1;
  uint32_t seed = 1;
};

void RunSupport(const Arguments& arguments) {
  const IRModule module = ReadInspected(arguments.model).module;
  const SupportReport report = DescribeSupport(module, SplitCommas(arguments.toolchains));
  PrintReport(SupportFacts(report, arguments.model.file), arguments.json);
}

/// Whether every row of all tables agrees with the reference evaluation.
bool AllAgree(const std::vector<OperatorTable>& tables) {
  return std::ranges::all_of(tables, [](const OperatorTable& table) {
    return std::ranges::all_of(table.rows, [](const OperatorRow& row) { return row.failures.empty(); });
  });
}

void RunTable(const Arguments& arguments) {
  OperatorTableOptions options;
  options.toolchains = SplitCommas(arguments.toolchains);
  options.operators = SplitCommas(arguments.operators);
  options.dtypes = SplitCommas(arguments.dtypes);
  options.num_calls = arguments.num_calls;
  options.seed = arguments.seed;
  const std::vector<OperatorTable> tables = TabulateOperators(options);
  PrintReport(OperatorTablesFacts(tables), arguments.json, {.markdown = true});
  if (!AllAgree(tables)) throw CLI::RuntimeError(1);
}

void Run(const Arguments& arguments) {
  if (arguments.table) return RunTable(arguments);
  if (!arguments.model.file.empty()) return RunSupport(arguments);
  if (!arguments.toolchains.empty() || !arguments.model.settings.empty()) {
    throw Error(ErrorCategory::kInput, "--toolchains, --shape, --dim, --constant and --length go with --support", "",
                "give --support MODEL, or --table");
  }
  // Toolchains ask a device's driver in children, which can be forked only before this process uses it.
  const std::vector<ToolchainReport> toolchains = ProbeToolchains();
  PrintReport(ToolchainsFacts(toolchains, DescribeDevices()), arguments.json);
}

}  // namespace

void AddTargetsCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("targets", "List toolchains, their versions and options, and why some are not available");
  command->add_option(
      "--support", arguments->model.file,
      "Show which calls of this model (ONNX or Relay text) each toolchain takes, and why not the others");
  AddSetting(*command, "shapes", arguments->model.settings, "With --support.");
  AddSetting(*command, "dims", arguments->model.settings, "With --support.");
  AddSetting(*command, "constants", arguments->model.settings, "With --support.");
  AddSetting(*command, "lengths", arguments->model.settings, "With --support.");
  command->add_option("--toolchains", arguments->toolchains,
                      "With --support or --table: only these toolchains, separated by commas");
  command->add_flag(
      "--table", arguments->table,
      "Print the operators, types and layouts that each toolchain takes, each checked on random shapes against "
      "the reference evaluation; takes minutes");
  command->add_option("--operators", arguments->operators, "With --table: only these operators, separated by commas");
  command->add_option("--dtypes", arguments->dtypes, "With --table: only these types, separated by commas");
  command->add_option("--calls", arguments->num_calls, "With --table: random calls per row")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "With --table: seed of random shapes and values")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
