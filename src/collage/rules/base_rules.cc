// base_rules.cc: candidates straight from the dataflow graph.
#include "collage/extract.h"
#include "collage/partition_rule.h"

namespace collage {
namespace {

using Candidates = std::vector<CandidatePartition>;

void Refuse(RuleLog& log, const std::string& label, const Reason& reason) {
  if (log.on_refusal) log.on_refusal(label, reason);
}

class DFPatternPartitionRule : public PartitionRule {
 public:
  DFPatternPartitionRule(std::string name, DFPatternPtr pattern, std::function<Result<void>(const Function&)> predicate)
      : name_(std::move(name)), pattern_(std::move(pattern)), predicate_(std::move(predicate)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    for (int root = 0; root < static_cast<int>(graph.size()); ++root) {
      if (graph.node(root).is_in_primitive) continue;
      MatchPattern(graph, *pattern_, root, [&](const std::vector<int>& inside) {
        SubGraph sub_graph(graph, inside);
        if (sub_graph.exit().empty() || !sub_graph.CheckValid(graph, {.max_exits = 1}).ok()) return;
        if (predicate_) {
          const Result<void> supported = predicate_(Extract(graph, sub_graph).function);
          if (!supported.ok()) return Refuse(log, sub_graph.OperatorLabel(graph), supported.reason());
        }
        result.push_back({name_, std::move(sub_graph), &toolchain});
      });
    }
    return result;
  }

 private:
  std::string name_;
  DFPatternPtr pattern_;
  std::function<Result<void>(const Function&)> predicate_;
};

class OpPredicatePartitionRule : public PartitionRule {
 public:
  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (graph.OpAt(index) == nullptr || graph.node(index).is_in_primitive) continue;
      const Result<void> supported = toolchain.SupportsCall(*As<CallNode>(graph.node(index).expr));
      if (!supported.ok()) {
        Refuse(log, graph.LabelAt(index), supported.reason());
        continue;
      }
      result.push_back({graph.LabelAt(index), SubGraph(graph, {index}), &toolchain});
    }
    return result;
  }
};

class OpCallByKindPartitionRule : public PartitionRule {
 public:
  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog&) const override {
    Candidates result;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (graph.OpAt(index) == nullptr || graph.node(index).is_in_primitive) continue;
      if (graph.KindAt(index) > OpPatternKind::kOutEWiseFusable) continue;
      result.push_back({graph.LabelAt(index), SubGraph(graph, {index}), &toolchain});
    }
    return result;
  }
};

class HostPartitionRule : public PartitionRule {
 public:
  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog&) const override {
    Candidates result;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (graph.node(index).is_in_primitive || NeedsToolchain(graph, index)) continue;
      result.push_back({"host", SubGraph(graph, {index}), &toolchain});
    }
    return result;
  }

 private:
  static bool NeedsToolchain(const DataflowGraph& graph, int index) {
    if (const OpDef* op = graph.OpAt(index)) return op->name != "shape_of";
    return graph.LabelAt(index) == "call_prim";
  }
};

}  // namespace

PartitionRulePtr DFPatternRule(std::string name, DFPatternPtr pattern,
                               std::function<Result<void>(const Function&)> predicate) {
  return std::make_unique<DFPatternPartitionRule>(std::move(name), std::move(pattern), std::move(predicate));
}
PartitionRulePtr OpPredicateRule() { return std::make_unique<OpPredicatePartitionRule>(); }
PartitionRulePtr OpCallByKindRule() { return std::make_unique<OpCallByKindPartitionRule>(); }
PartitionRulePtr HostRule() { return std::make_unique<HostPartitionRule>(); }

}  // namespace collage
