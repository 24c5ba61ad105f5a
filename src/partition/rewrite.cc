// rewrite.cc: the whole function as one scope, partitions being its nested sub-graphs.
#include "partition/rewrite.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "dataflow/needs.h"
#include "partition/scope_builder.h"
#include "target/annotations.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

std::optional<Function> Rebuild(const DataflowGraph& graph, const std::vector<NestedSubGraph>& units,
                                ScopeBuilder::Finish finish) {
  ScopeBuilder scope(graph, nullptr, units, std::move(finish));
  const int root = static_cast<int>(graph.size()) - 1;
  if (!scope.Build({root})) return std::nullopt;
  return AsShared<FunctionNode>(scope.ValueOf(root));
}

/// A partition computes something, and is not the whole function.
void CheckComputes(const DataflowGraph& graph, const SubGraph& sub_graph) {
  const std::vector<int>& inside = sub_graph.members();
  const bool computes = !std::all_of(inside.begin(), inside.end(), [&](int index) { return graph.CanInline(index); });
  if (computes && !graph.node(sub_graph.last()).is_external) return;
  throw Error(ErrorCategory::kUnsupported,
              fmt::format("{} ({}) cannot be a partition: it computes nothing, or is the whole function",
                          sub_graph.inside().ToString(), sub_graph.Label(graph)));
}

}  // namespace

std::optional<Function> RewritePartitions(const DataflowGraph& graph, const std::vector<ChosenPartition>& chosen) {
  std::vector<NestedSubGraph> units;
  for (const ChosenPartition& partition : chosen) {
    const Toolchain& toolchain = *partition.candidate->toolchain;
    Attrs attrs{{kAttrPrimitive, 1}, {kAttrEstimate, partition.estimated_seconds}};
    if (std::string compiler = CompilerOf(toolchain); !compiler.empty()) attrs.Set(kAttrCompiler, std::move(compiler));
    if (!partition.schedule.empty()) attrs.Set(kAttrSchedule, partition.schedule);
    attrs.Set("global_symbol", fmt::format("collage_{}_{}", RegisteredName(toolchain.name()), units.size()));
    const SubGraph& sub_graph = partition.candidate->sub_graph;
    units.push_back({sub_graph.members(), std::move(attrs), sub_graph.nested});
  }
  return Rebuild(graph, units, [&](size_t number, Function function) {
    Function annotated = WithLayouts(function, chosen[number].layouts);
    annotated->set_checked_type(function->checked_type());
    return annotated;
  });
}

std::optional<Function> RewriteNested(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates) {
  std::vector<NestedSubGraph> units;
  for (const CandidatePartition& candidate : candidates) {
    if (!candidate.sub_graph.nested.empty()) CheckComputes(graph, candidate.sub_graph);
    units.insert(units.end(), candidate.sub_graph.nested.begin(), candidate.sub_graph.nested.end());
  }
  return Rebuild(graph, units, {});
}

bool CanBeOrdered(const DataflowGraph& graph, const std::vector<const SubGraph*>& sub_graphs) {
  // Kahn's algorithm over sub-graphs and the nodes in none.
  std::vector<int> unit_of(graph.size(), -1);
  for (size_t i = 0; i < sub_graphs.size(); ++i) {
    for (int index : sub_graphs[i]->members()) {
      if (!graph.IsCopied(index)) unit_of[index] = static_cast<int>(i);
    }
  }
  int num_units = static_cast<int>(sub_graphs.size());
  for (int& unit : unit_of) {
    if (unit < 0) unit = num_units++;
  }
  std::vector<int> waits_for(num_units);
  std::vector<std::vector<int>> feeds(num_units);
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
    const int to = unit_of[index];
    ForEachNeed(graph, index, [&](int input) {
      const int from = unit_of[input];
      if (from == to) return;
      feeds[from].push_back(to);
      ++waits_for[to];
    });
  }
  std::vector<int> ready;
  for (int unit = 0; unit < num_units; ++unit) {
    if (waits_for[unit] == 0) ready.push_back(unit);
  }
  int num_done = 0;
  while (!ready.empty()) {
    const int unit = ready.back();
    ready.pop_back();
    ++num_done;
    for (int next : feeds[unit]) {
      if (--waits_for[next] == 0) ready.push_back(next);
    }
  }
  return num_done == num_units;
}

}  // namespace collage
