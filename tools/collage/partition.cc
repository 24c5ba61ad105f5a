// partition.cc: `collage partition`: the least-cost cover by given targets at given costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/transform/passes.h"
#include "inspect_input.h"

namespace collage::cli {
namespace {

struct Arguments {
  InspectArguments input;
  std::string targets;
  std::string costs = "{}";
  std::string emit;
  bool plan_devices = false;
  bool no_metadata = false;
};

/// JSON has no number for an unknown cost.
Json CostJson(double cost) { return std::isnan(cost) ? Json("unknown") : Json(cost); }
std::string CostText(double cost) { return std::isnan(cost) ? "unknown" : fmt::format("{:.6g}", cost); }

void PrintReport(const CoverReport& cover, const Arguments& arguments, const std::string& module) {
  if (arguments.input.json) {
    Json report{{"schema", 1}, {"cost", CostJson(cover.cost)}, {"next_best_cost", nullptr}};
    if (cover.next_best_cost) report["next_best_cost"] = CostJson(*cover.next_best_cost);
    report["partitions"] = Json::array();
    for (const PartitionReport& partition : cover.partitions) {
      report["partitions"].push_back({{"target", partition.target},
                                      {"rule_name", partition.rule_name},
                                      {"inside", partition.inside},
                                      {"ops", partition.ops},
                                      {"cost", CostJson(partition.cost)}});
    }
    report["host"] = cover.host;
    report["searched"] = {
        {"states", cover.num_states}, {"candidates", cover.num_candidates}, {"costs", cover.num_costs}};
    if (!module.empty()) report["module"] = module;
    return PrintJson(report);
  }
  if (!module.empty()) {
    fmt::print("{}", module);
    return;
  }
  Table table({"target", "cost", "operators", "inside", "rule"});
  for (const PartitionReport& partition : cover.partitions) {
    table.Add({partition.target, CostText(partition.cost), fmt::format("{}", fmt::join(partition.ops, " ")),
               JoinNumbers(partition.inside), partition.rule_name});
  }
  fmt::print("{}cost {}, next best {}; {} nodes left to the host\n", table.ToText(), CostText(cover.cost),
             cover.next_best_cost ? CostText(*cover.next_best_cost) : "none", cover.host.size());
  fmt::print("searched: {} states, {} candidates, {} costs\n", cover.num_states, cover.num_candidates, cover.num_costs);
}

void Run(const Arguments& arguments) {
  InspectedFile file = ReadInspected(arguments.input);
  if (arguments.plan_devices) file.module = RunPasses({"PlanDevices"}, std::move(file.module));
  const bool emits = arguments.emit == "relay";
  const CoverReport cover =
      PartitionByGivenCosts(InspectedFunction(file, arguments.input), ReadJsonArgument(arguments.targets, "--targets"),
                            ReadJsonArgument(arguments.costs, "--costs"), emits);
  std::string text;
  if (emits) {
    IRModule module = file.module;
    module.Set(arguments.input.function, cover.rewritten);
    text = PrintModule(InferTypes(std::move(module)), {.types = true, .metadata = !arguments.no_metadata});
  }
  PrintReport(cover, arguments, text);
}

}  // namespace

void AddPartitionCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("partition", "Choose partitions from given targets, rules and costs, without measuring");
  AddInspectFlags(*command, arguments->input);
  command->add_option("--targets", arguments->targets, R"([{"name", "external", "rule"}, …], or a file of it)")
      ->required();
  command->add_option("--costs", arguments->costs, R"({"op_cost", "fusion_benefit", …}, or a file of it)");
  command->add_option("--emit", arguments->emit, "Print the rewritten module: relay")->check(CLI::IsMember({"relay"}));
  command->add_flag("--plan-devices", arguments->plan_devices,
                    "Plan devices by on_device annotations first; targets then take only nodes on their device");
  command->add_flag("--no-metadata", arguments->no_metadata, "Leave out the values of constants");
  command->callback([arguments] { WithPlace(arguments->input.file, [&] { Run(*arguments); }); });
}

}  // namespace collage::cli
