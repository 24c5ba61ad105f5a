// partition.cc: `collage partition`: the least-cost cover by given targets at given costs.
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/transform/passes.h"
#include "inspect_input.h"
#include "report/inspect_facts.h"

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
  PrintReport(CoverFacts(cover, text), arguments.input.json);
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
  command->footer(
      R"(Examples:
  collage partition model.onnx --targets '[{"name": "a", "rule": {"rule": "OpCallByKind"}}]')");
  command->callback([arguments] { WithPlace(arguments->input.file, [&] { Run(*arguments); }); });
}

}  // namespace collage::cli
