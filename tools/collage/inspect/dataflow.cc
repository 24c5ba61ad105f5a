// dataflow.cc: `collage dataflow`: the indexed graph of a function; `collage subgraph`: one sub-graph of it.
#include <fmt/format.h>

#include <charconv>

#include "collage/support/error.h"
#include "inspect_input.h"
#include "report/inspect_facts.h"

namespace collage::cli {
namespace {

void RunDataflow(const InspectArguments& arguments) {
  PrintReport(DataflowFacts(InspectDataflow(InspectedFunction(ReadInspected(arguments), arguments))), arguments.json);
}

struct SubGraphArguments {
  InspectArguments input;
  std::string inside;
  std::string config = "{}";
};

std::vector<int> ParseIndices(const std::string& text) {
  std::vector<int> indices;
  for (const std::string& part : SplitCommas(text)) {
    int index = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (code != std::errc() || end != part.data() + part.size() || index < 0) {
      throw Error(ErrorCategory::kInput, fmt::format("malformed index '{}'", part), "--inside", "write 5,6,8");
    }
    indices.push_back(index);
  }
  return indices;
}

void RunSubGraph(const SubGraphArguments& arguments) {
  const Function function = InspectedFunction(ReadInspected(arguments.input), arguments.input);
  const SubGraphReport report =
      InspectSubGraph(function, ParseIndices(arguments.inside), ReadJsonArgument(arguments.config, "--config"));
  PrintReport(SubGraphFacts(report), arguments.input.json);
}

}  // namespace

void AddDataflowCommand(CLI::App& app) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand("dataflow", "List a function's nodes, edges, basic blocks and dominators");
  AddInspectFlags(*command, *arguments);
  command->footer(
      "Examples:\n"
      "  collage dataflow model.onnx");
  command->callback([arguments] { WithPlace(arguments->file, [&] { RunDataflow(*arguments); }); });
}

void AddSubGraphCommand(CLI::App& app) {
  auto arguments = std::make_shared<SubGraphArguments>();
  CLI::App* command = app.add_subcommand("subgraph", "Describe the sub-graph of some nodes: boundary, kind, validity");
  AddInspectFlags(*command, arguments->input);
  command->add_option("--inside", arguments->inside, "Indices of the nodes inside, separated by commas")->required();
  command->add_option("--config", arguments->config, R"(Limits: {"max_exits", "allow_taps", "max_depth"}, or a file)");
  command->footer(
      "Examples:\n"
      "  collage subgraph model.onnx --inside 3,4");
  command->callback([arguments] { WithPlace(arguments->input.file, [&] { RunSubGraph(*arguments); }); });
}

}  // namespace collage::cli
