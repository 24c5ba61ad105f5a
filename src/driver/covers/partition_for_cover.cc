// partition_for_cover.cc: passes rebuild what they partition, so that nodes are told by their spans, which say where
// each was in the dataflow graph.
#include "driver/covers/partition_for_cover.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/structural.h"
#include "collage/ir/visitor.h"
#include "collage/partition_for.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "driver/covers/greedy_cover.h"
#include "partition/passes.h"
#include "support/sort_unique.h"
#include "target/annotations.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

class Reader {
 public:
  Reader(Partitioner& partitioner, const Toolchain& toolchain)
      : partitioner_(partitioner),
        candidates_(partitioner.candidates()),
        graph_(partitioner.candidates().graph()),
        toolchain_(toolchain),
        taken_(graph_.size()) {}

  /// Adds the partition that `function` computes.
  Result<void> Read(const Function& function) {
    SubGraph sub_graph(graph_, NodesOf(function->body()));
    PostOrder(function->body(), [&](const Expr& expr) {
      const FunctionNode* inner = As<FunctionNode>(expr);
      const std::string composite = inner == nullptr ? "" : inner->attrs().StringOr("Composite", "");
      if (!composite.empty()) sub_graph.nested.push_back({NodesOf(inner->body()), {{"Composite", composite}}, {}});
    });
    Result<void> answer = sub_graph.CheckRunnable(graph_);
    if (!answer.ok()) return answer;
    const auto spec = std::ranges::find_if(candidates_.specs(), [&](const PartitionSpec& one) {
      return one.toolchain == &toolchain_ && FitsPlannedDevices(graph_, sub_graph, one.targets);
    });
    if (spec == candidates_.specs().end()) return Refusal(sub_graph, "is planned for another device");
    result_.candidates.push_back({"partition_for", std::move(sub_graph), &toolchain_, &*spec});
    return Choose(result_.candidates.back());
  }

  /// Adds what the fall-back toolchain computes.
  Result<OwnedPartitions> Finish(const Toolchain* fall_back) {
    IndexSet rest(graph_.size());
    for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
      if (MustBeCovered(graph_, index) && !taken_.Contains(index)) rest.Add(index);
    }
    const auto is_of_fall_back = [&](const CandidatePartition& candidate) { return candidate.toolchain == fall_back; };
    std::vector<int> open;
    const std::optional<Cover> others = GreedyCover(
        partitioner_, toolchain_, {.fall_back = fall_back, .may_take = is_of_fall_back, .nodes = rest}, &open);
    if (!others) return Reason{"nothing computes the rest: " + partitioner_.ExplainStuck(open), toolchain_.name()};
    for (ChosenPartition& one : partitioner_.ChosenOf(*others)) {
      result_.candidates.push_back(*one.candidate);
      one.candidate = &result_.candidates.back();
      result_.chosen.push_back(std::move(one));
    }
    std::vector<const SubGraph*> sub_graphs;
    for (const CandidatePartition& one : result_.candidates) sub_graphs.push_back(&one.sub_graph);
    if (!CanBeOrdered(graph_, sub_graphs)) return Reason{"partitions need each other in a circle", toolchain_.name()};
    std::ranges::sort(result_.chosen, {}, [](const ChosenPartition& one) { return one.candidate->sub_graph.first(); });
    return std::move(result_);
  }

 private:
  /// The nodes of the graph that calls of operators, tuples, projections and constants in `body` are; ascending.
  std::vector<int> NodesOf(const Expr& body) const {
    std::vector<int> nodes;
    PostOrder(body, [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      const bool calls_function = call != nullptr && call->op() == nullptr;
      const bool is_bound = expr->kind() == ExprKind::kVar || expr->kind() == ExprKind::kFunction;
      const Span& span = expr->span();
      if (calls_function || is_bound || span.source != kIndexSpan) return;
      nodes.push_back(span.line);
    });
    SortUnique(nodes);
    return nodes;
  }

  Reason Refusal(const SubGraph& sub_graph, const std::string& why) const {
    return {fmt::format("partition '{}' {}", sub_graph.OperatorLabel(graph_), why), toolchain_.name()};
  }

  Result<void> Choose(const CandidatePartition& own) {
    const ExtractedFunction extracted = Extract(graph_, own.sub_graph);
    const std::vector<BoundaryLayouts> choices = candidates_.LayoutsOf(own, extracted);
    // The gain of keeping values as narrower types depends on the neighbours, which are not known here.
    const auto layouts = std::ranges::find_if_not(choices, KeepsNarrow);
    if (layouts == choices.end()) return Refusal(own.sub_graph, "is none that the toolchain takes whole");
    ChosenPartition chosen{&own, *layouts};
    if (const std::optional<VariantIndex> equal = EqualTo(extracted, *layouts)) {
      if (partitioner_.IsInvalid(*equal)) return Refusal(own.sub_graph, "fails: " + partitioner_.WhyInvalid(*equal));
      const ChosenPartition known = partitioner_.ChosenOf({{*equal}}).front();
      chosen.estimated_seconds = known.estimated_seconds;
      chosen.schedule = known.schedule;
    }
    result_.chosen.push_back(std::move(chosen));
    for (const int node : own.sub_graph.members()) taken_.Add(node);
    return {};
  }

  /// A variant that computes the same in the same layouts, wherever in the graph.
  std::optional<VariantIndex> EqualTo(const ExtractedFunction& extracted, const BoundaryLayouts& layouts) const {
    const std::string workload = StructuralHash(extracted.function, {.constants_by_shape = true});
    for (const Candidates::VariantClass& one : candidates_.classes()) {
      const bool is_own = candidates_.CandidateOf(one.first).toolchain == &toolchain_;
      if (is_own && one.workload == workload && candidates_.variant(one.first).layouts == layouts) return one.first;
    }
    return std::nullopt;
  }

  Partitioner& partitioner_;
  const Candidates& candidates_;
  const DataflowGraph& graph_;
  const Toolchain& toolchain_;
  IndexSet taken_;
  OwnedPartitions result_;
};

Result<OwnedPartitions> Read(Partitioner& partitioner, const Toolchain& toolchain, const Toolchain* fall_back,
                             const IRModule& partitioned) {
  Reader reader(partitioner, toolchain);
  for (const auto& [name, function] : partitioned.functions()) {
    if (!function->attrs().Has(kAttrCompiler)) continue;
    const Result<void> answer = reader.Read(function);
    if (!answer.ok()) return answer.reason();
  }
  return reader.Finish(fall_back);
}

}  // namespace

Result<OwnedPartitions> PartitionForCover(Partitioner& partitioner, const Toolchain& toolchain,
                                          const Toolchain* fall_back, const IRModule& module,
                                          const PassContext& context) {
  const Toolchain* registered = ToolchainRegistry::Global().Find(RegisteredName(toolchain.name()));
  if (registered == nullptr) return Reason{"the toolchain is not registered", toolchain.name()};
  PassContext own = context;
  own.instruments.clear();  // these watch what prepares the model, not what it is compared with
  try {
    const IRModule traced = Sequential({"CapturePostDfsIndexInSpans"}).Run(module, own);
    return Read(partitioner, toolchain, fall_back, PartitionPrepared(*registered, traced, own));
  } catch (const Error& error) {  // of regions in a circle, or nodes that no partition can hold
    if (error.category() != ErrorCategory::kInput && error.category() != ErrorCategory::kUnsupported) throw;
    return Reason{error.message(), toolchain.name()};
  }
}

}  // namespace collage
