// reports.cc: dataflow, sub-graphs, candidates and rewriting, reported by index.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collage/inspect.h"
#include "inspect/given_targets.h"
#include "partition/partition_rule.h"
#include "partition/rewrite.h"
#include "partition/rules/rule_kinds.h"

namespace collage {
namespace {

/// Candidates of a rule, each set of nodes once for each way to wrap it: the first that was found.
std::vector<CandidatePartition> DistinctCandidates(const DataflowGraph& graph, const JsonText& rule,
                                                   const Toolchain& toolchain) {
  RuleLog log;
  std::vector<CandidatePartition> candidates = ParseRule(rule.text, rule.file)->AllCandidates(graph, toolchain, log);
  if (log.candidates_capped) {
    throw Error(ErrorCategory::kResource, "the rule finds too many candidates", rule.file,
                "give its Combine rules a 'max_depth'");
  }
  std::set<std::vector<int>> seen;
  std::erase_if(candidates, [&](const CandidatePartition& one) { return !seen.insert(KeyOf(one.sub_graph)).second; });
  return candidates;
}

}  // namespace

std::vector<DataflowNodeReport> InspectDataflow(const Function& function) {
  const DataflowGraph graph(function, Boundaries::kExact);
  const std::vector<int> parents = DominatorParents(graph);
  std::vector<DataflowNodeReport> reports;
  const auto known = [](int index) { return index < 0 ? std::nullopt : std::optional(index); };
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
    const DataflowGraph::Node& node = graph.node(index);
    reports.push_back({index, graph.LabelAt(index), node.inputs, node.outputs, known(node.basic_block),
                       node.is_external, known(parents[static_cast<size_t>(index)])});
  }
  return reports;
}

SubGraphReport InspectSubGraph(const Function& function, const std::vector<int>& inside, const JsonText& config) {
  const DataflowGraph graph(function, Boundaries::kExact);
  if (inside.empty()) throw Error(ErrorCategory::kInput, "a sub-graph has at least one node inside");
  for (int index : inside) {
    if (index >= 0 && index < static_cast<int>(graph.size())) continue;
    throw Error(ErrorCategory::kInput,
                fmt::format("there is no node {}: the graph has nodes 0 to {}", index, graph.size() - 1));
  }
  const SubGraph sub_graph(graph, inside);
  const Result<void> valid =
      sub_graph.CheckValid(graph, ReadSubGraphConfig(JsonReader::Parse(config.text, config.file)));
  return {sub_graph.entry(),      sub_graph.exit(),  sub_graph.input(),
          sub_graph.output(),     sub_graph.depth(), KindLetter(sub_graph.kind()),
          sub_graph.Label(graph), valid.ok(),        valid.ok() ? "" : valid.reason().text};
}

std::vector<CandidateReport> InspectCandidates(const Function& function, const JsonText& rule) {
  const DataflowGraph graph(function, Boundaries::kExact);
  const GivenToolchain toolchain({"inspected", false});
  std::vector<CandidateReport> reports;
  for (const CandidatePartition& candidate : DistinctCandidates(graph, rule, toolchain)) {
    const SubGraph& sub_graph = candidate.sub_graph;
    reports.push_back({sub_graph.members(), candidate.rule_name, sub_graph.Label(graph), KindLetter(sub_graph.kind()),
                       sub_graph.depth()});
  }
  std::sort(reports.begin(), reports.end(),
            [](const CandidateReport& a, const CandidateReport& b) { return a.inside < b.inside; });
  return reports;
}

Function RewriteByRule(const Function& function, const JsonText& rule, const TargetName& target) {
  const DataflowGraph graph(function, Boundaries::kExact);
  const GivenToolchain toolchain(target);
  std::vector<CandidatePartition> candidates = DistinctCandidates(graph, rule, toolchain);
  std::erase_if(candidates, [](const CandidatePartition& one) { return one.sub_graph.nested.empty(); });
  IndexSet taken(graph.size());
  for (const CandidatePartition& candidate : candidates) {
    const IndexSet& inside = candidate.sub_graph.inside();
    if (inside.Intersects(taken)) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("candidates overlap in {}: only disjoint ones can be applied in parallel",
                              (inside & taken).ToString()),
                  rule.file);
    }
    const Result<void> runnable = candidate.sub_graph.CheckRunnable(graph);
    if (!runnable.ok()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("candidate {} cannot be a partition: {}", inside.ToString(), runnable.reason().text),
                  rule.file);
    }
    taken = taken | inside;
  }
  std::optional<Function> rewritten = RewriteNested(graph, candidates);
  if (!rewritten) {
    throw Error(ErrorCategory::kInput, "candidates depend on each other in a circle", rule.file);
  }
  return *rewritten;
}

}  // namespace collage
