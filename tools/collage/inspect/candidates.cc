// candidates.cc: `collage candidates`: what a rule finds; `collage rewrite`: the module with all of that applied.
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "inspect_input.h"
#include "report/inspect_facts.h"

namespace collage::cli {
namespace {

struct CandidatesArguments {
  InspectArguments input;
  std::string rule;
};

void RunCandidates(const CandidatesArguments& arguments) {
  const Function function = InspectedFunction(ReadInspected(arguments.input), arguments.input);
  const std::vector<CandidateReport> candidates =
      InspectCandidates(function, ReadJsonArgument(arguments.rule, "--rule"));
  PrintReport(CandidatesFacts(candidates), arguments.input.json);
}

struct RewriteArguments {
  InspectArguments input;
  std::string rule;
  std::string spec = "inspected";
  bool no_metadata = false;
};

void RunRewrite(const RewriteArguments& arguments) {
  const InspectedFile file = ReadInspected(arguments.input);
  const Function rewritten = RewriteByRule(InspectedFunction(file, arguments.input),
                                           ReadJsonArgument(arguments.rule, "--rule"), ParseTargetName(arguments.spec));
  IRModule module = file.module;
  module.Set(arguments.input.function, rewritten);
  const std::string text =
      PrintModule(InferTypes(std::move(module)), {.types = true, .metadata = !arguments.no_metadata});
  PrintReport(Fact::Report(1, {Fact::Text("module", "module", text)}).Says("{module}"), arguments.input.json);
}

}  // namespace

void AddCandidatesCommand(CLI::App& app) {
  auto arguments = std::make_shared<CandidatesArguments>();
  CLI::App* command = app.add_subcommand("candidates", "List the candidate partitions that a rule finds");
  AddInspectFlags(*command, arguments->input);
  command->add_option("--rule", arguments->rule, "The rule, as JSON or a JSON file (docs/inspection.md)")->required();
  command->footer(
      R"(Examples:
  collage candidates model.onnx --rule '{"rule": "OpCallByKind"}')");
  command->callback([arguments] { WithPlace(arguments->input.file, [&] { RunCandidates(*arguments); }); });
}

void AddRewriteCommand(CLI::App& app) {
  auto arguments = std::make_shared<RewriteArguments>();
  CLI::App* command = app.add_subcommand("rewrite", "Print the module with all candidates of a rule applied");
  AddInspectFlags(*command, arguments->input);
  command->add_option("--rule", arguments->rule, "The rule, as JSON or a JSON file (docs/inspection.md)")->required();
  command->add_option("--spec", arguments->spec, "Toolchain that the candidates belong to: NAME, or NAME:external")
      ->capture_default_str();
  command->add_flag("--no-metadata", arguments->no_metadata, "Leave out the values of constants");
  command->footer(
      R"(Examples:
  collage rewrite model.onnx --no-metadata --rule '{"rule": "Primitive", "sub_rule": {"rule": "OpCallByKind"}}')");
  command->callback([arguments] { WithPlace(arguments->input.file, [&] { RunRewrite(*arguments); }); });
}

}  // namespace collage::cli
