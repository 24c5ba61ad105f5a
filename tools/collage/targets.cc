// targets.cc: `collage targets`: each toolchain, whether it can be used here, or why not; with --support, what it takes
// of a model, or why not; with --table, what it takes at all.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collage/compile.h"
#include "collage/support/error.h"
#include "collage/support_report.h"
#include "command.h"
#include "inspect_input.h"
#include "operator_table.h"

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

Json ToJson(const ToolchainReport& toolchain) {
  Json json{{"name", toolchain.name},          {"available", toolchain.available}, {"version", toolchain.version},
            {"default", toolchain.is_default}, {"reason", toolchain.reason},       {"hint", toolchain.hint},
            {"license", toolchain.license},    {"hooks", toolchain.hooks}};
  json["options"] = Json::array();
  for (const ToolchainOption& option : toolchain.options) {
    json["options"].push_back(
        {{"name", option.name}, {"type", option.type}, {"default", option.default_value}, {"meaning", option.doc}});
  }
  for (const auto& [name, reason] : toolchain.incompatible) {
    json["incompatible"].push_back({{"toolchain", name}, {"reason", reason}});
  }
  return json;
}

Json ToJson(const OperatorSupport& support) {
  Json json{{"name", support.op},           {"calls", support.num_calls},
            {"alone", support.num_alone},   {"in_patterns", support.num_in_patterns},
            {"patterns", support.patterns}, {"refused", Json::array()}};
  for (const RefusedCalls& refused : support.refused) {
    json["refused"].push_back({{"calls", refused.num_calls},
                               {"reason", refused.reason},
                               {"pattern", refused.pattern},
                               {"example", refused.example}});
  }
  return json;
}

Json ToJson(const SupportReport& report, const std::string& model) {
  Json json{{"schema", 1},
            {"model", model},
            {"calls", report.num_calls},
            {"outside", report.num_outside},
            {"toolchains", Json::array()}};
  for (const ToolchainSupport& support : report.toolchains) {
    Json one = ToJson(support.toolchain);
    one["taken"] = support.num_taken;
    one["operators"] = Json::array();
    for (const OperatorSupport& op : support.operators) one["operators"].push_back(ToJson(op));
    json["toolchains"].push_back(std::move(one));
  }
  return json;
}

/// "dnnl.conv2d 20, dnnl.conv2d_bias 18 and 5 more": those that hold most calls.
std::string PatternsText(const OperatorSupport& support) {
  constexpr size_t kShown = 3;
  std::vector<std::pair<std::string, int64_t>> patterns(support.patterns.begin(), support.patterns.end());
  std::ranges::stable_sort(patterns, std::greater<>(), &std::pair<std::string, int64_t>::second);
  std::string text;
  for (size_t i = 0; i < std::min(patterns.size(), kShown); ++i) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", patterns[i].first, patterns[i].second);
  }
  if (patterns.size() > kShown) text += fmt::format(" and {} more", patterns.size() - kShown);
  return text;
}

std::string RefusalText(const RefusedCalls& refused) {
  std::string text = fmt::format("not {}: {}", refused.num_calls, refused.reason);
  if (!refused.pattern.empty()) text += fmt::format(" ({})", refused.pattern);
  if (!refused.example.empty()) text += fmt::format(", at {}", refused.example);
  return text;
}

void Print(const SupportReport& report) {
  for (const ToolchainSupport& support : report.toolchains) {
    const ToolchainReport& toolchain = support.toolchain;
    fmt::print("{} takes {} of {} calls{}\n", toolchain.name, support.num_taken, report.num_calls,
               toolchain.available ? "" : "; not available here: " + toolchain.reason);
    Table table({"operator", "calls", "alone", "in patterns", "taken by, or why not"});
    for (const OperatorSupport& op : support.operators) {
      std::vector<std::string> details;
      if (!op.patterns.empty()) details.push_back(PatternsText(op));
      for (const RefusedCalls& refused : op.refused) details.push_back(RefusalText(refused));
      if (details.empty()) details.emplace_back();
      table.Add({op.op, std::to_string(op.num_calls), std::to_string(op.num_alone), std::to_string(op.num_in_patterns),
                 details[0]});
      for (size_t i = 1; i < details.size(); ++i) table.Add({"", "", "", "", details[i]});
    }
    fmt::print("{}\n", table.ToText());
  }
  if (report.num_outside > 0) {
    fmt::print("{} more calls are in no region of dataflow of static tensors: reference evaluation\n",
               report.num_outside);
  }
}

void RunSupport(const Arguments& arguments) {
  const IRModule module = ReadInspected(arguments.model).module;
  const SupportReport report = DescribeSupport(module, SplitCommas(arguments.toolchains));
  if (arguments.json) return PrintJson(ToJson(report, arguments.model.file));
  Print(report);
}

/// What --target may tell them.
void PrintOptions(const std::vector<ToolchainReport>& toolchains) {
  Table table({"option", "default", "what it means"});
  bool has_rows = false;
  for (const ToolchainReport& toolchain : toolchains) {
    for (const ToolchainOption& option : toolchain.options) {
      table.Add({fmt::format("{} -{}", toolchain.name, option.name), option.default_value, option.doc});
      has_rows = true;
    }
  }
  if (has_rows) fmt::print("\n{}", table.ToText());
}

void RunTargets(bool json) {
  const std::vector<ToolchainReport> toolchains = ProbeToolchains();
  if (json) {
    Json report{{"schema", 1}, {"toolchains", Json::array()}};
    for (const ToolchainReport& toolchain : toolchains) report["toolchains"].push_back(ToJson(toolchain));
    PrintJson(report);
    return;
  }
  Table table({"toolchain", "available", "version", "licence", "why not"});
  for (const ToolchainReport& toolchain : toolchains) {
    const char* available = !toolchain.available ? "no" : toolchain.is_default ? "yes" : "when named";
    table.Add({toolchain.name, available, toolchain.version, toolchain.license,
               toolchain.reason + (toolchain.hint.empty() ? "" : " (" + toolchain.hint + ")")});
  }
  fmt::print("{}", table.ToText());
  std::set<std::pair<std::string, std::string>> told;
  for (const ToolchainReport& toolchain : toolchains) {
    for (const auto& [other, reason] : toolchain.incompatible) {
      if (!told.insert(std::minmax(toolchain.name, other)).second) continue;
      fmt::print("never together: {} and {}: {}\n", toolchain.name, other, reason);
    }
  }
  PrintOptions(toolchains);
}

void RunTable(const Arguments& arguments) {
  OperatorTableOptions options;
  options.toolchains = SplitCommas(arguments.toolchains);
  options.operators = SplitCommas(arguments.operators);
  options.dtypes = SplitCommas(arguments.dtypes);
  options.num_calls = arguments.num_calls;
  options.seed = arguments.seed;
  const std::vector<OperatorTable> tables = TabulateOperators(options);
  if (arguments.json) {
    PrintJson(OperatorTablesToJson(tables));
  } else {
    PrintOperatorTables(tables);
  }
  if (!AllAgree(tables)) throw CLI::RuntimeError(1);
}

void Run(const Arguments& arguments) {
  if (arguments.table) return RunTable(arguments);
  if (!arguments.model.file.empty()) return RunSupport(arguments);
  if (!arguments.toolchains.empty() || !arguments.model.shapes.empty()) {
    throw Error(ErrorCategory::kInput, "--toolchains and --shape go with --support", "",
                "give --support MODEL, or --table");
  }
  RunTargets(arguments.json);
}

}  // namespace

void AddTargetsCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("targets", "List toolchains, their versions and options, and why some are not available");
  command->add_option(
      "--support", arguments->model.file,
      "Show which calls of this model (ONNX or Relay text) each toolchain takes, and why not the others");
  command->add_option("--shape", arguments->model.shapes,
                      "With --support: shape of a dynamic input, NAME=1x3x640x640; may be repeated");
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
