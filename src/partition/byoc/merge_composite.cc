// merge_composite.cc: what matches a toolchain's patterns becomes calls of Composite functions. Rows earlier in the
// table are matched first, and within a row what comes first in post-dfs order; nothing is matched twice. Rows that
// only measuring can tell the worth of (PatternTableEntry::is_greedy) are left out.
#include <algorithm>

#include "partition/byoc/toolchains.h"
#include "partition/partition_rule.h"
#include "partition/passes.h"
#include "partition/rewrite.h"

namespace collage {
namespace {

/// "nn.conv2d_add_nn.relu_": the operators of a match in order.
std::string Operators(const DataflowGraph& graph, const SubGraph& sub_graph) {
  std::string text;
  for (int index : sub_graph.members()) {
    if (const OpDef* op = graph.OpAt(index)) text += op->name + "_";
  }
  return text;
}

/// Matches that do not overlap, wrapped.
std::vector<CandidatePartition> ChooseMatches(const DataflowGraph& graph, const Toolchain& toolchain) {
  std::vector<CandidatePartition> chosen;
  IndexSet taken(graph.size());
  RuleLog log;
  for (const PatternTableEntry& entry : toolchain.PatternTable()) {
    if (!entry.is_greedy) continue;
    const PartitionRulePtr rule =
        OnlyValidRule({.max_exits = 1}, DFPatternRule(entry.name, ParsePattern(entry.pattern), entry.predicate));
    for (CandidatePartition& match : rule->AllCandidates(graph, toolchain, log)) {
      const std::vector<int>& members = match.sub_graph.members();
      const auto is_taken = [&](int index) { return taken.Contains(index) || graph.node(index).is_in_primitive; };
      if (std::any_of(members.begin(), members.end(), is_taken)) continue;
      for (int index : members) {
        if (!graph.IsConstant(index)) taken.Add(index);
      }
      match.sub_graph = match.sub_graph.Wrapped(
          {{"Composite", entry.name}, {"PartitionedFromPattern", Operators(graph, match.sub_graph)}});
      chosen.push_back(std::move(match));
    }
  }
  return chosen;
}

}  // namespace

Function MergeComposite(const Function& function, const IRModule&, const PassContext& context) {
  const Toolchain& toolchain = FindToolchain(context, "relay.MergeComposite.toolchain");
  if (toolchain.PatternTable().empty()) return function;
  const DataflowGraph graph(function);
  std::vector<CandidatePartition> chosen = ChooseMatches(graph, toolchain);
  if (std::optional<Function> result = RewriteNested(graph, chosen)) return *result;
  // Matches depend on each other in a circle: take one after the other as long as there is none.
  std::vector<CandidatePartition> ordered;
  std::vector<const SubGraph*> sub_graphs;
  for (CandidatePartition& candidate : chosen) {
    sub_graphs.push_back(&candidate.sub_graph);
    if (CanBeOrdered(graph, sub_graphs)) {
      ordered.push_back(candidate);
    } else {
      sub_graphs.pop_back();
    }
  }
  return RewriteNested(graph, ordered).value();
}

}  // namespace collage
