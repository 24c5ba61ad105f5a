// targets.cc: `collage targets`: each toolchain, whether it can be used here, or why not; with --support, what it takes
// of a model, or why not; with --table, what it takes at all.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "collage/compile.h"
#include "collage/operator_table.h"
#include "collage/support/error.h"
#include "collage/support_report.h"
#include "collage/target/toolchain.h"
#include "command.h"
#include "console_progress.h"
#include "inspect/inspect_input.h"
#include "report/toolchain_facts.h"
#include "runtime/known_devices.h"

namespace collage::cli {
namespace {

struct Arguments {
  InspectArguments model;
  std::vector<std::string> names;
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
  ConsoleProgress progress({.quiet = arguments.json}, std::numeric_limits<double>::infinity());
  options.on_progress = [&](const std::string& toolchain, size_t done, size_t all) {
    progress.Step(fmt::format("{} · {} of {} rows", toolchain, done, all));
  };
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
  std::vector<ToolchainReport> toolchains = ProbeToolchains();
  for (const std::string& name : arguments.names) ToolchainRegistry::Global().Get(name);
  std::erase_if(toolchains, [&](const ToolchainReport& one) {
    return !arguments.names.empty() && std::ranges::find(arguments.names, one.name) == arguments.names.end();
  });
  const std::vector<KnownDevice> devices = arguments.names.empty() ? DescribeDevices() : std::vector<KnownDevice>();
  PrintReport(ToolchainsFacts(toolchains, devices, /*is_whole=*/!arguments.names.empty()), arguments.json);
}

}  // namespace

void AddTargetsCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("targets", "List toolchains, their versions and options, and why some are not available");
  command->add_option("toolchains", arguments->names, "Show all that is known of these only: licence, hooks, options");
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
  command->footer(
      "Examples:\n"
      "  collage targets\n"
      "  collage targets native\n"
      "  collage targets --support model.onnx                            which operators each toolchain takes, and why "
      "not the others\n"
      "  collage targets --table --toolchains native --operators exp     checks a toolchain's operators against the "
      "reference");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
