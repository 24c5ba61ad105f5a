// partition.cc: phases 1 to 4 on given targets and costs.
//
// Registered targets of a plain graph are partitioned as pass CollagePartition does. All else is partitioned with exact
// boundaries: every node that is not within a partition already must be covered, by a target or by the host; so the
// sets that overlap in a tuple or a constant cannot be chosen together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "collage/inspect.h"
#include "cost/estimator/estimators.h"
#include "driver/covers/coalesced_cover.h"
#include "driver/covers/partitioner.h"
#include "inspect/given_targets.h"
#include "ir/place.h"
#include "partition/name_supply.h"
#include "program/regions.h"

namespace collage {
namespace {

/// Whether a compilation partitions `function` for `specs` as it is.
bool IsCompiledSo(const Function& function, const std::vector<PartitionSpec>& specs) {
  return !IsProgram(IRModule::FromFunction(function)) &&
         std::ranges::all_of(specs, [](const PartitionSpec& spec) { return !spec.targets.empty(); });
}

/// One run over one function.
class GivenPartitioner {
 public:
  GivenPartitioner(const Function& function, const JsonText& targets, const GivenCosts& costs)
      : specs_(ReadTargets(targets)),
        boundaries_(IsCompiledSo(function, specs_) ? Boundaries::kTensors : Boundaries::kExact),
        candidates_(function, WithHost(), /*num_threads=*/1, boundaries_),
        estimator_(MakeGivenEstimator(costs, candidates_)),
        partitioner_(candidates_, *estimator_),
        coalesces_(costs.coalesce()) {
    if (candidates_.capped().empty()) return;
    throw Error(ErrorCategory::kResource,
                fmt::format("the rule of '{}' finds too many candidates", candidates_.capped()[0]), "",
                "give its Combine rules a 'max_depth'");
  }

  CoverReport Run(bool rewrite) {
    const SearchResult found = Search({});
    if (found.covers.empty()) FailToCover(partitioner_.NodesAt(found.stuck_at));
    CoverReport report;
    report.cost = TotalOf(found.covers[0]);
    report.next_best_cost = NextBest();
    report.num_states = found.num_states;
    report.num_candidates = static_cast<int64_t>(candidates_.candidates().size());
    report.num_costs = found.num_exact;
    report.is_exact = found.is_exact;
    report.num_dropped = found.num_dropped;
    report.least_cost = found.least_seconds;
    Describe(found.covers[0], rewrite, report);
    return report;
  }

 private:
  const std::vector<PartitionSpec>& WithHost() {
    if (boundaries_ == Boundaries::kExact) specs_.push_back(HostSpec());
    return specs_;
  }

  SearchResult Search(const SearchOptions& options) {
    return partitioner_.Search([](CandidateIndex) { return true; }, options);
  }

  /// The second least cost of a cover.
  std::optional<double> NextBest() {
    const SearchResult two = Search({.num_covers = 2, .slack = std::numeric_limits<double>::infinity(), .beam = 0});
    return two.covers.size() > 1 ? std::optional(TotalOf(two.covers[1])) : std::nullopt;
  }

  static double TotalOf(const Cover& cover) {
    return cover.num_unknown > 0 ? std::numeric_limits<double>::quiet_NaN() : cover.seconds;
  }

  void Describe(const Cover& cover, bool rewrite, CoverReport& report) {
    std::vector<ChosenPartition> chosen = partitioner_.ChosenOf(cover);
    std::map<int, Cost> cost_at;  // by first node
    for (size_t i = 0; i < chosen.size(); ++i) {
      const int first = chosen[i].candidate->sub_graph.first();
      cost_at[first] = Cost::FromDouble(partitioner_.Exact(cover.variants[i]));
    }
    std::erase_if(chosen, [](const ChosenPartition& one) { return one.candidate->spec->is_host(); });
    OwnedPartitions merged;
    if (coalesces_) {
      merged = Coalesced(candidates_, chosen, [](const PartitionSpec&) { return true; });
      chosen = merged.chosen;
    }
    IndexSet left(candidates_.graph().size());
    for (size_t node = 0; node < candidates_.graph().size(); ++node) left.Add(static_cast<int>(node));
    for (const ChosenPartition& partition : chosen) {
      report.partitions.push_back(ReportOf(*partition.candidate, cost_at));
      left = left - partition.candidate->sub_graph.inside();
    }
    for (const int node : left.Members()) {
      if (!candidates_.graph().node(node).is_in_primitive) report.host.push_back(node);
    }
    if (rewrite) report.rewritten = Rewritten(chosen);
  }

  PartitionReport ReportOf(const CandidatePartition& partition, const std::map<int, Cost>& cost_at) const {
    PartitionReport row{partition.spec->name, partition.rule_name, partition.sub_graph.members(), {}, 0};
    Cost cost;
    for (const int index : row.inside) {
      if (const OpDef* op = candidates_.graph().OpAt(index)) row.ops.push_back(op->name);
      if (const auto it = cost_at.find(index); it != cost_at.end()) cost += it->second;
    }
    row.cost = cost.ToDouble();
    return row;
  }

  Function Rewritten(const std::vector<ChosenPartition>& chosen) const {
    std::optional<Function> rewritten;
    if (boundaries_ == Boundaries::kTensors) {
      const std::optional<IRModule> module =
          partitioner_.Apply(chosen, IRModule::FromFunction(candidates_.graph().function()));
      if (module) rewritten = module->main();
    } else {
      rewritten = RewriteNested(candidates_.graph(), Named(chosen));
    }
    COLLAGE_CHECK(rewritten.has_value()) << "the search chose partitions that depend on each other in a circle";
    return *rewritten;
  }

  /// Copies of the candidates whose external functions have distinct names.
  std::vector<CandidatePartition> Named(const std::vector<ChosenPartition>& chosen) const {
    NameSupply names("collage");
    std::vector<CandidatePartition> partitions;
    for (const ChosenPartition& one : chosen) {
      CandidatePartition& partition = partitions.emplace_back(*one.candidate);
      for (NestedSubGraph& nested : partition.sub_graph.nested) {
        const std::string compiler = nested.attrs.StringOr("Compiler", "");
        if (compiler.empty()) continue;
        nested.attrs.Set("global_symbol",
                         names.Fresh({compiler, partition.sub_graph.OperatorLabel(candidates_.graph())}));
      }
    }
    return partitions;
  }

  /// Says of each node that stays open why no target takes it.
  [[noreturn]] void FailToCover(const std::vector<int>& nodes) {
    constexpr size_t kShown = 10;
    const DataflowGraph& graph = candidates_.graph();
    std::string text = "no cover: ";
    for (size_t i = 0; i < nodes.size() && i < kShown; ++i) {
      const int node = nodes[i];
      text += fmt::format("{}'{}' (node {})", i == 0 ? "" : "; ", graph.LabelAt(node), node);
      for (const PartitionSpec& spec : specs_) {
        text += fmt::format(", {}: {}", spec.name, partitioner_.WhyNot(node, spec));
      }
    }
    if (nodes.size() > kShown) text += fmt::format("; and {} more nodes", nodes.size() - kShown);
    const Span& span = graph.node(nodes[0]).expr->span();
    throw Error(ErrorCategory::kUnsupported, text, span.line > 0 ? PlaceOf(span) : "");
  }

  std::vector<PartitionSpec> specs_;
  Boundaries boundaries_;
  Candidates candidates_;
  std::unique_ptr<CostEstimator> estimator_;
  Partitioner partitioner_;
  bool coalesces_;
};

}  // namespace

CoverReport PartitionByGivenCosts(const Function& function, const JsonText& targets, const JsonText& costs,
                                  bool rewrite, CandidateCost estimate) {
  return GivenPartitioner(function, targets, GivenCosts(costs, std::move(estimate))).Run(rewrite);
}

}  // namespace collage
