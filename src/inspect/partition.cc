// partition.cc: phases 1 to 4 on given targets and costs. Every node that is not within a partition already must be
// covered, by a target or by the host; so the sets that overlap in a tuple or a constant cannot be chosen together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "collage/inspect.h"
#include "cost/estimator/given_costs.h"
#include "dataflow/needs.h"
#include "inspect/given_targets.h"
#include "ir/place.h"
#include "partition/name_supply.h"
#include "partition/rewrite.h"
#include "search/strategies/compatible_covers.h"

namespace collage {
namespace {

/// Candidates have one variant each here: nothing but the toolchain is chosen.
CandidateIndex CandidateOf(VariantIndex variant) { return CandidateIndex(variant.number()); }

class GivenCoverCosts : public BasicCoverCosts {
 public:
  GivenCoverCosts(const DataflowGraph& graph, const CandidateList& candidates, const GivenCosts& given)
      : graph_(graph), candidates_(candidates), given_(given) {}

  double LowerBound(VariantIndex /*variant*/) override { return 0; }
  double Exact(VariantIndex variant) override {
    const CandidatePartition& candidate = CandidateAt(variant);
    return given_.CostOf(TargetOf(candidate), graph_, candidate.sub_graph).ToDouble();
  }
  double Convert(int /*value*/, Format /*from*/, Format /*to*/) override { return 0; }
  double Transition(VariantIndex variant) override {
    const bool is_host = TargetOf(CandidateAt(variant)) == "host";
    return is_host ? 0 : given_.transition_penalty();
  }

 private:
  const CandidatePartition& CandidateAt(VariantIndex variant) const { return candidates_[CandidateOf(variant)]; }

  const DataflowGraph& graph_;
  const CandidateList& candidates_;
  const GivenCosts& given_;
};

/// One run over one function.
class GivenPartitioner {
 public:
  GivenPartitioner(const Function& function, const JsonText& targets, GivenCosts costs)
      : graph_(function, Boundaries::kExact), targets_(ReadTargets(targets)), costs_(std::move(costs)) {
    for (const GivenTarget& target : targets_) AddCandidates(target);
  }

  CoverReport Run(bool rewrite) {
    const CoverProblem problem = Problem();
    GivenCoverCosts costs(graph_, candidates_, costs_);
    SearchOptions options;
    options.num_covers = 2;
    options.slack = std::numeric_limits<double>::infinity();
    options.beam = 0;
    const SearchResult found = SearchCompatibleCovers(problem, costs, options, Sets());
    if (found.covers.empty()) FailToCover(problem.NodesAt(found.stuck_at));
    CoverReport report;
    const auto total = [](const Cover& cover) {
      return cover.num_unknown > 0 ? std::numeric_limits<double>::quiet_NaN() : cover.seconds;
    };
    report.cost = total(found.covers[0]);
    if (found.covers.size() > 1) report.next_best_cost = total(found.covers[1]);
    report.num_states = found.num_states;
    report.num_candidates = static_cast<int64_t>(candidates_.size());
    report.num_costs = found.num_exact;
    report.is_exact = found.is_exact;
    report.num_dropped = found.num_dropped;
    report.least_cost = found.least_seconds;
    Describe(found.covers[0], rewrite, report);
    return report;
  }

 private:
  void AddCandidates(const GivenTarget& target) {
    RuleLog log;
    std::set<std::vector<int>> seen;
    for (CandidatePartition& candidate : target.AllCandidates(graph_, log)) {
      if (!seen.insert(candidate.sub_graph.members()).second) continue;
      if (!candidate.sub_graph.CheckRunnable(graph_).ok()) continue;
      candidates_.push_back(std::move(candidate));
    }
    if (log.candidates_capped) {
      throw Error(ErrorCategory::kResource,
                  fmt::format("the rule of '{}' finds too many candidates", target.toolchain->target_name()), "",
                  "give its Combine rules a 'max_depth'");
    }
  }

  /// Targets, by number, whose toolchains can be in one process.
  std::vector<std::vector<int>> Sets() const {
    std::vector<const Toolchain*> toolchains;
    for (const GivenTarget& target : targets_) toolchains.push_back(target.toolchain.get());
    std::vector<std::vector<int>> sets;
    for (const std::vector<const Toolchain*>& compatible : CompatibleSets(toolchains)) {
      sets.emplace_back();
      for (const Toolchain* toolchain : compatible) sets.back().push_back(toolchain->priority());
    }
    return sets;
  }

  /// Positions are the nodes that no existing partition computes.
  CoverProblem Problem() const {
    CoverProblem problem;
    std::vector<Position> position(graph_.size(), Position(-1));
    for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
      if (graph_.node(index).is_in_primitive || graph_.LabelAt(index) == "call_prim") continue;
      position[static_cast<size_t>(index)] = problem.nodes.next();
      problem.nodes.push_back(index);
    }
    problem.num_positions = static_cast<int>(problem.nodes.size());
    for (const CandidatePartition& candidate : candidates_) {
      CoverVariant variant;
      for (int index : candidate.sub_graph.members()) variant.covers.push_back(position[static_cast<size_t>(index)]);
      variant.priority = candidate.toolchain->priority();
      variant.toolchain = variant.priority;
      if (candidate.sub_graph.exit().size() > 1) variant.members = candidate.sub_graph.members();
      problem.variants.push_back(std::move(variant));
    }
    for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
      problem.node_inputs.push_back(NeedsOf(graph_, index));
    }
    return problem;
  }

  void Describe(const Cover& cover, bool rewrite, CoverReport& report) const {
    std::vector<CandidatePartition> chosen;
    for (VariantIndex variant : cover.variants) {
      const CandidatePartition& candidate = candidates_[CandidateOf(variant)];
      if (TargetOf(candidate) == "host") {
        report.host.push_back(candidate.sub_graph.first());
      } else {
        chosen.push_back(candidate);
      }
    }
    std::map<int, Cost> cost_at;  // by first node
    for (const CandidatePartition& candidate : chosen) {
      cost_at[candidate.sub_graph.first()] = costs_.CostOf(TargetOf(candidate), graph_, candidate.sub_graph);
    }
    const std::vector<CandidatePartition> merged =
        costs_.coalesce() ? MaxCoalesce(graph_, chosen, {.allow_taps = true}) : chosen;
    for (const CandidatePartition& partition : merged) {
      PartitionReport row{TargetOf(partition), partition.rule_name, partition.sub_graph.members(), {}, 0};
      Cost cost;
      for (int index : row.inside) {
        if (const OpDef* op = graph_.OpAt(index)) row.ops.push_back(op->name);
        if (const auto it = cost_at.find(index); it != cost_at.end()) cost += it->second;
      }
      row.cost = cost.ToDouble();
      report.partitions.push_back(std::move(row));
    }
    if (rewrite) report.rewritten = Rewritten(merged);
  }

  Function Rewritten(std::vector<CandidatePartition> partitions) const {
    NameSupply names("collage");
    for (CandidatePartition& partition : partitions) {
      for (NestedSubGraph& nested : partition.sub_graph.nested) {
        const std::string compiler = nested.attrs.StringOr("Compiler", "");
        if (compiler.empty()) continue;
        nested.attrs.Set("global_symbol", names.Fresh({compiler, partition.sub_graph.OperatorLabel(graph_)}));
      }
    }
    std::optional<Function> rewritten = RewriteNested(graph_, partitions);
    COLLAGE_CHECK(rewritten.has_value()) << "the search chose partitions that depend on each other in a circle";
    return *rewritten;
  }

  /// Says of each node that stays open why no target takes it.
  [[noreturn]] void FailToCover(const std::vector<int>& nodes) const {
    constexpr size_t kShown = 10;
    std::string text = "no cover: ";
    for (size_t i = 0; i < nodes.size() && i < kShown; ++i) {
      const int node = nodes[i];
      text += fmt::format("{}'{}' (node {})", i == 0 ? "" : "; ", graph_.LabelAt(node), node);
      for (const GivenTarget& target : targets_) {
        text += fmt::format(", {}: {}", target.toolchain->target_name(), WhyNot(node, *target.toolchain));
      }
    }
    if (nodes.size() > kShown) text += fmt::format("; and {} more nodes", nodes.size() - kShown);
    const Span& span = graph_.node(nodes[0]).expr->span();
    throw Error(ErrorCategory::kUnsupported, text, span.line > 0 ? PlaceOf(span) : "");
  }

  std::string WhyNot(int node, const Toolchain& toolchain) const {
    std::string why = "its rule finds no candidate with it";
    for (const CandidatePartition& candidate : candidates_) {
      if (candidate.toolchain != &toolchain || !candidate.sub_graph.inside().Contains(node)) continue;
      if (!costs_.CostOf(TargetOf(candidate), graph_, candidate.sub_graph).is_invalid())
        return "its candidates leave other nodes without cover";
      why = costs_.WhyInfinite(TargetOf(candidate), graph_, candidate.sub_graph);
      if (why.empty()) why = "its candidates have infinite cost";
    }
    return why;
  }

  DataflowGraph graph_;
  std::vector<GivenTarget> targets_;
  GivenCosts costs_;
  CandidateList candidates_;
};

}  // namespace

CoverReport PartitionByGivenCosts(const Function& function, const JsonText& targets, const JsonText& costs,
                                  bool rewrite, CandidateCost estimate) {
  return GivenPartitioner(function, targets, GivenCosts(costs, std::move(estimate))).Run(rewrite);
}

}  // namespace collage
