// compile.cc: `collage compile`: the main job, its progress and its report.
#include "collage/compile.h"

#include <fmt/format.h>

#include <cmath>

#include "collage/support/error.h"
#include "command.h"
#include "compile_options.h"
#include "console_progress.h"
#include "inspect_input.h"
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
  bool quiet = false;
};

std::string PartitionsText(const Contestant& contestant) {
  std::string text;
  for (const auto& [toolchain, count] : contestant.partitions) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " · ", toolchain, count);
  }
  return text;
}

/// Null where not all covers were tried.
Json OptimalityLoss(const CompileReport& report) {
  return report.optimality_loss_seconds ? Json(*report.optimality_loss_seconds) : Json();
}

Json BoundedJson(const BoundedMix& bounded) {
  return {
      {"allowed", bounded.allowed}, {"best_error", bounded.best_error}, {"best_partitions", bounded.best_partitions},
      {"error", bounded.error},     {"partitions", bounded.partitions}, {"built", bounded.num_built},
      {"seconds", bounded.seconds}};
}

Json ToJson(const CompileReport& report) {
  Json json{{"schema", 1},
            {"model", report.model},
            {"operators", report.num_operators},
            {"parameters", report.num_parameters},
            {"machine", report.machine},
            {"threads", report.num_threads},
            {"output", report.output.string()},
            {"output_bytes", report.output_bytes},
            {"winner", report.winner},
            {"additive_error_seconds", report.additive_error_seconds},
            {"apparent_loss_seconds", report.apparent_loss_seconds},
            {"optimality_loss_seconds", OptimalityLoss(report)},
            {"optimality_loss_unknown", report.optimality_loss_unknown},
            {"covers", report.num_covers}};
  for (const ToolchainReport& toolchain : report.toolchains) {
    json["toolchains"].push_back({{"name", toolchain.name},
                                  {"available", toolchain.available},
                                  {"version", toolchain.version},
                                  {"reason", toolchain.reason},
                                  {"takes_part_as", toolchain.participants}});
  }
  json["precision_variants"] = report.precision_variants;
  json["no_precision_variants"] = report.no_precision_variants;
  json["search"] = {{"candidates", report.num_candidates},
                    {"variants", report.num_variants},
                    {"states", report.num_states},
                    {"distinct", report.num_distinct},
                    {"measured", report.num_measured},
                    {"remeasured", report.num_remeasured},
                    {"from_database", report.num_from_database},
                    {"failed", report.num_failed},
                    {"below_bound", report.num_below_bound},
                    {"budget_spent", report.budget_spent}};
  json["tuning"] = TuningJson(report.tuning);
  if (!report.verified_sizes.empty() || !report.not_verified.empty()) {
    json["verified"] = {
        {"sizes", report.verified_sizes}, {"max_error", report.verified_error}, {"not_verified", report.not_verified}};
  }
  if (report.bounded) json["bounded_mix"] = BoundedJson(*report.bounded);
  for (const auto& [kind, failure] : report.failures) {
    json["failures"].push_back({{"kind", kind}, {"count", failure.first}, {"example", failure.second}});
  }
  for (const Contestant& contestant : report.contestants) {
    json["play_off"].push_back({{"name", contestant.name},
                                {"single", contestant.is_single},
                                {"extra", contestant.is_extra},
                                {"estimated_seconds", contestant.estimated_seconds},
                                {"p50_seconds", contestant.p50},
                                {"p90_seconds", contestant.p90},
                                {"min_seconds", contestant.minimum},
                                {"samples", contestant.samples},
                                {"relative", contestant.relative},
                                {"first_relative", contestant.first_relative},
                                {"is_finalist", contestant.is_finalist},
                                {"max_error", contestant.max_error},
                                {"partitions", contestant.partitions},
                                {"failure", contestant.failure}});
  }
  json["seconds"] = {{"import", report.import_seconds},      {"search", report.search_seconds},
                     {"play_off", report.play_off_seconds},  {"check", report.play_off_parts.check},
                     {"build", report.play_off_parts.build}, {"timing", report.play_off_parts.timing},
                     {"write", report.play_off_parts.write}, {"total", report.total_seconds}};
  for (const CompileReport& region : report.regions) json["regions"].push_back(ToJson(region));
  for (const EvaluatedOperator& one : report.evaluated) {
    json["reference_evaluation"].push_back(
        {{"operator", one.op}, {"count", one.count}, {"first_node", one.node}, {"reason", one.reason}});
  }
  return json;
}

/// A program's regions, each with the winner of its play-off.
void PrintRegions(const CompileReport& report) {
  if (report.regions.empty()) return;
  Table table({"region", "operators", "winner", "p50", "partitions"});
  for (size_t i = 0; i < report.regions.size(); ++i) {
    for (const Contestant& contestant : report.regions[i].contestants) {
      if (contestant.name != report.regions[i].winner) continue;
      table.Add({std::to_string(i), std::to_string(report.regions[i].num_operators), contestant.name,
                 FormatSeconds(contestant.p50), PartitionsText(contestant)});
    }
  }
  fmt::print("{}", table.ToText());
}

void PrintPlayOff(const CompileReport& report) {
  if (report.contestants.empty()) return PrintRegions(report);
  const Contestant* winner = nullptr;
  for (const Contestant& contestant : report.contestants) {
    if (contestant.name == report.winner) winner = &contestant;
  }
  Table table({"play-off", "p50", "± half p10-p90", "", "estimated", "partitions"});
  for (const Contestant& contestant : report.contestants) {
    if (!contestant.failure.empty() || (contestant.is_extra && &contestant != winner)) continue;
    table.Add({contestant.name + (contestant.is_single ? " alone" : ""), FormatSeconds(contestant.p50),
               FormatSeconds(contestant.p90 - contestant.p50),
               winner == nullptr ? "" : fmt::format("{:.2f}x", contestant.p50 / winner->p50),
               contestant.estimated_seconds > 0 ? FormatSeconds(contestant.estimated_seconds) : "",
               PartitionsText(contestant)});
  }
  fmt::print("{}", table.ToText());
  for (const Contestant& contestant : report.contestants) {
    if (!contestant.failure.empty()) fmt::print("  {} is out: {}\n", contestant.name, contestant.failure);
  }
}

/// "+1.20 ms".
std::string FormatDifference(double seconds) {
  if (seconds == 0) return "0";
  return (seconds < 0 ? "-" : "+") + FormatSeconds(std::abs(seconds));
}

/// RFC 0.81's measures of what the additive cost model is worth.
void PrintLosses(const CompileReport& report) {
  std::string losses;
  for (const auto& [toolchain, seconds] : report.apparent_loss_seconds) {
    losses += fmt::format("{}{} {}", losses.empty() ? "" : " · ", toolchain, FormatDifference(seconds));
  }
  std::string optimality = report.optimality_loss_unknown;
  if (report.optimality_loss_seconds) {
    optimality = fmt::format("{}, of {} covers", FormatDifference(*report.optimality_loss_seconds), report.num_covers);
  }
  if (report.contestants.empty() || (losses.empty() && optimality.empty())) return;
  fmt::print("costs       additive error {}{}{}\n", FormatDifference(report.additive_error_seconds),
             optimality.empty() ? "" : " · optimality loss " + optimality,
             losses.empty() ? "" : " · apparent loss: " + losses);
}

/// What computes in a lower precision because any was asked for.
void PrintVariants(const CompileReport& report) {
  std::string names;
  for (const std::string& name : report.precision_variants) names += (names.empty() ? "" : " · ") + name;
  if (!names.empty()) fmt::print("precision   any: {}\n", names);
  if (!report.no_precision_variants.empty())
    fmt::print("precision   any: no more than float32: {}\n", report.no_precision_variants);
}

/// How much of the best mix may be computed in a lower precision.
std::string BoundedText(const BoundedMix& bounded) {
  const auto lower = [](int partitions) {
    return fmt::format("{} partition{} in lower precision", partitions, partitions == 1 ? "" : "s");
  };
  const std::string cost = fmt::format("{} mixes built in {:.1f} s", bounded.num_built, bounded.seconds);
  const std::string best =
      fmt::format("the best mix has {}, off by {:.1e}", lower(bounded.best_partitions), bounded.best_error);
  if (bounded.best_error <= bounded.allowed)
    return fmt::format("{}, {:g} is allowed ({})", best, bounded.allowed, cost);
  if (bounded.partitions == 0)
    return fmt::format("{}, {:g} is allowed: no part that fits was found ({})", best, bounded.allowed, cost);
  return fmt::format("collage-bounded has {}, off by {:.1e}, {:g} is allowed; {} ({})", lower(bounded.partitions),
                     bounded.error, bounded.allowed, best, cost);
}

void PrintReport(const CompileReport& report) {
  fmt::print("{}  {} operators · {:.2f} M parameters\n", report.model, report.num_operators,
             static_cast<double>(report.num_parameters) / 1e6);
  fmt::print("machine     {} · {} thread{}\n", report.machine, report.num_threads, report.num_threads == 1 ? "" : "s");
  std::string here;
  std::string missing;
  for (const ToolchainReport& toolchain : report.toolchains) {
    for (const std::string& name : toolchain.participants) {
      here += fmt::format("{}{} {}", here.empty() ? "" : " · ", name, toolchain.version);
    }
    if (toolchain.available) continue;
    missing += fmt::format("{}{} ({})", missing.empty() ? "" : " · ", toolchain.name, toolchain.reason);
  }
  fmt::print("toolchains  {}{}\n", here, missing.empty() ? "" : "   not here: " + missing);
  PrintVariants(report);
  fmt::print("search      {} candidates, with formats {} · {} measured{}, {} from the database, {} failed{}\n",
             report.num_candidates, report.num_variants, report.num_measured,
             report.num_remeasured > 0 ? fmt::format(" and {} again", report.num_remeasured) : "",
             report.num_from_database, report.num_failed,
             report.budget_spent ? " · the budget was spent: run again to measure more" : "");
  for (const auto& [kind, failure] : report.failures) {
    fmt::print("            {} x {}   first: {}\n", failure.first, kind, failure.second.substr(0, 160));
  }
  if (const std::string tuning = TuningText(report.tuning); !tuning.empty()) fmt::print("schedules   {}\n", tuning);
  if (report.bounded) fmt::print("precision   {}\n", BoundedText(*report.bounded));
  PrintPlayOff(report);
  PrintLosses(report);
  for (const Contestant& contestant : report.contestants) {
    if (contestant.name != report.winner) continue;
    fmt::print("verified    {} against the reference evaluation: max error {:.1e} of the largest result\n",
               contestant.name, contestant.max_error);
  }
  if (!report.verified_sizes.empty()) {
    std::string sizes;
    for (const std::string& one : report.verified_sizes) sizes += (sizes.empty() ? "" : " · ") + one;
    fmt::print("verified    the program at {}: max error {:.1e} of the largest result\n", sizes, report.verified_error);
  }
  if (!report.not_verified.empty()) fmt::print("verified    not: {}\n", report.not_verified);
  const PlayOffSeconds& parts = report.play_off_parts;
  fmt::print(
      "wrote       {}  {}  in {:.1f} s (import {:.1f}, search {:.1f}, build {:.1f}, check {:.1f}, timing {:.1f}, write "
      "{:.1f})\n",
      report.output.string(), FormatBytes(static_cast<double>(report.output_bytes)), report.total_seconds,
      report.import_seconds, report.search_seconds, parts.build, parts.check, parts.timing, parts.write);
}

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
  if (arguments.json) {
    PrintJson(ToJson(report));
  } else {
    PrintReport(report);
  }
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
  command->add_flag("--json", arguments->json, "Print the report as JSON");
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
