// questions.cc: names and numbers, and what to say of those that are not there.
#include "explain/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collage/support/error.h"
#include "support/edit_distance.h"
#include "support/sort_unique.h"

namespace collage {
namespace {

std::string Hint(const std::string& name, const std::vector<std::string>& known, const std::string& otherwise) {
  const std::vector<std::string> near = NearMisses(name, known);
  return near.empty() ? otherwise : fmt::format("did you mean '{}'?", near[0]);
}

}  // namespace

const GraphExplanation& GraphAt(const Explanation& explanation, int64_t number, const std::string& where) {
  const auto count = static_cast<int64_t>(explanation.graphs.size());
  if (number >= 0 && number < count) return explanation.graphs[static_cast<size_t>(number)];
  throw Error(ErrorCategory::kInput,
              count == 0 ? "no part of the model was searched"
                         : fmt::format("there is no region {}: the model has {}, from 0", number, count),
              where);
}

PartitionPlace PartitionAt(const Explanation& explanation, size_t graph, int64_t number, const std::string& where) {
  const auto count = static_cast<int64_t>(GraphAt(explanation, static_cast<int64_t>(graph), where).partitions.size());
  if (number >= 0 && number < count) return {graph, static_cast<size_t>(number)};
  throw Error(ErrorCategory::kInput, fmt::format("there is no partition {}: there are {}, from 0", number, count),
              where, "`collage explain` lists them");
}

std::vector<int> NodesNamed(const GraphExplanation& graph, const std::string& name) {
  std::vector<int> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind == "call" && graph.nodes[i].name == name) nodes.push_back(static_cast<int>(i));
  }
  return nodes;
}

std::vector<PartitionPlace> PartitionsOf(const Explanation& explanation, const std::string& name) {
  std::vector<PartitionPlace> places;
  std::vector<std::string> known;
  for (size_t g = 0; g < explanation.graphs.size(); ++g) {
    const GraphExplanation& graph = explanation.graphs[g];
    const std::vector<int> nodes = NodesNamed(graph, name);
    for (size_t p = 0; p < graph.partitions.size(); ++p) {
      const std::vector<int>& own = graph.partitions[p].nodes;
      if (std::ranges::any_of(nodes, [&](int node) { return std::ranges::binary_search(own, node); })) {
        places.push_back({g, p});
      }
    }
    for (const ExplainedNode& node : graph.nodes) {
      if (node.kind == "call" && !node.name.empty()) known.push_back(node.name);
    }
  }
  if (!places.empty()) return places;
  SortUnique(known);
  throw Error(
      ErrorCategory::kInput, fmt::format("no partition computes a node '{}'", name), "--node",
      Hint(name, known, "a node may have been folded into a constant, or into a neighbour: `--json` lists all"));
}

std::vector<int> ConfigurationsOf(const GraphExplanation& graph, const std::string& toolchain) {
  std::vector<int> numbers;
  for (size_t i = 0; i < graph.toolchains.size(); ++i) {
    const ExplainedToolchain& one = graph.toolchains[i];
    if (one.name == toolchain || one.registered == toolchain) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

void CheckToolchain(const Explanation& explanation, const std::string& toolchain) {
  std::vector<std::string> known;
  for (const nlohmann::json& one : explanation.report.value("toolchains", nlohmann::json::array())) {
    known.push_back(one.value("name", ""));
  }
  for (const GraphExplanation& graph : explanation.graphs) {
    for (const ExplainedToolchain& one : graph.toolchains) known.push_back(one.name);
  }
  SortUnique(known);
  if (std::ranges::find(known, toolchain) != known.end()) return;
  throw Error(ErrorCategory::kInput, fmt::format("unknown toolchain '{}'", toolchain), "--why-not",
              Hint(toolchain, known, fmt::format("there are: {}", fmt::join(known, ", "))));
}

std::string OperatorsOf(const GraphExplanation& graph, const ExplainedCandidate& candidate) {
  std::string text;
  for (const int node : candidate.nodes) {
    const std::string& op = graph.nodes.at(static_cast<size_t>(node)).op;
    if (!op.empty()) text += (text.empty() ? "" : "+") + op;
  }
  return text;
}

std::vector<std::string> NamesOf(const GraphExplanation& graph, const std::vector<int>& nodes) {
  std::vector<std::string> names;
  for (const int index : nodes) {
    const ExplainedNode& node = graph.nodes.at(static_cast<size_t>(index));
    std::string name = node.name.empty() ? fmt::format("({})", node.op) : node.name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::string FormatsText(const std::vector<std::string>& formats) {
  std::vector<std::string> each;
  for (const std::string& format : formats) {
    if (std::ranges::find(each, format) == each.end()) each.push_back(format);
  }
  return each.empty() ? "plain" : fmt::format("{}", fmt::join(each, ", "));
}

const ExplainedCandidate& CandidateOf(const GraphExplanation& graph, const ExplainedPartition& partition) {
  return graph.candidates.at(static_cast<size_t>(partition.candidate));
}

const ExplainedCost* CostOf(const GraphExplanation& graph, const ExplainedCandidate& candidate) {
  return candidate.cost ? &graph.costs.at(static_cast<size_t>(*candidate.cost)) : nullptr;
}

}  // namespace collage
