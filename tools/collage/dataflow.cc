// dataflow.cc: `collage dataflow`: the indexed graph of a function; `collage subgraph`: one sub-graph of it.
#include <fmt/format.h>

#include <charconv>

#include "collage/support/error.h"
#include "inspect_input.h"

namespace collage::cli {
namespace {

Json OrNull(const std::optional<int>& index) { return index ? Json(*index) : Json(nullptr); }
std::string OrDash(const std::optional<int>& index) { return index ? std::to_string(*index) : "-"; }

void RunDataflow(const InspectArguments& arguments) {
  const std::vector<DataflowNodeReport> nodes = InspectDataflow(InspectedFunction(ReadInspected(arguments), arguments));
  if (arguments.json) {
    Json report{{"schema", 1}, {"size", nodes.size()}, {"nodes", Json::array()}};
    for (const DataflowNodeReport& node : nodes) {
      report["nodes"].push_back({{"i", node.index},
                                 {"label", node.label},
                                 {"inputs", node.inputs},
                                 {"outputs", node.outputs},
                                 {"basic_block", OrNull(node.basic_block)},
                                 {"external", node.is_external},
                                 {"dominator_parent", OrNull(node.dominator_parent)}});
    }
    return PrintJson(report);
  }
  Table table({"node", "label", "inputs", "outputs", "basic block", "dominator"});
  for (const DataflowNodeReport& node : nodes) {
    table.Add({std::to_string(node.index), node.label, JoinNumbers(node.inputs), JoinNumbers(node.outputs),
               OrDash(node.basic_block), node.is_external ? "external" : OrDash(node.dominator_parent)});
  }
  fmt::print("{}", table.ToText());
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
  if (arguments.input.json) {
    return PrintJson({{"schema", 1},
                      {"entry", report.entry},
                      {"exit", report.exit},
                      {"input", report.input},
                      {"output", report.output},
                      {"depth", report.depth},
                      {"kind", std::string(1, report.kind)},
                      {"label", report.label},
                      {"valid", report.is_valid},
                      {"why_invalid", report.why_invalid}});
  }
  Table table({"sub-graph", report.label});
  table.Add({"entry", JoinNumbers(report.entry)});
  table.Add({"exit", JoinNumbers(report.exit)});
  table.Add({"input", JoinNumbers(report.input)});
  table.Add({"output", JoinNumbers(report.output)});
  table.Add({"depth", std::to_string(report.depth)});
  table.Add({"kind", std::string(1, report.kind)});
  table.Add({"valid", report.is_valid ? "yes" : "no: " + report.why_invalid});
  fmt::print("{}", table.ToText());
}

}  // namespace

void AddDataflowCommand(CLI::App& app) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand("dataflow", "List a function's nodes, edges, basic blocks and dominators");
  AddInspectFlags(*command, *arguments);
  command->callback([arguments] { WithPlace(arguments->file, [&] { RunDataflow(*arguments); }); });
}

void AddSubGraphCommand(CLI::App& app) {
  auto arguments = std::make_shared<SubGraphArguments>();
  CLI::App* command = app.add_subcommand("subgraph", "Describe the sub-graph of some nodes: boundary, kind, validity");
  AddInspectFlags(*command, arguments->input);
  command->add_option("--inside", arguments->inside, "Indices of the nodes inside, separated by commas")->required();
  command->add_option("--config", arguments->config, R"(Limits: {"max_exits", "allow_taps", "max_depth"}, or a file)");
  command->callback([arguments] { WithPlace(arguments->input.file, [&] { RunSubGraph(*arguments); }); });
}

}  // namespace collage::cli
