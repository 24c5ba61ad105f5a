// wrap_rules.cc: rules that wrap, join lists, or drop candidates without making new sets of nodes.
#include <algorithm>
#include <set>

#include "collage/partition_rule.h"
#include "target/annotations.h"

namespace collage {
namespace {

using Candidates = std::vector<CandidatePartition>;

class CompositePartitionRule : public PartitionRule {
 public:
  CompositePartitionRule(std::string name, PartitionRulePtr sub_rule)
      : name_(std::move(name)), sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    for (CandidatePartition& candidate : candidates) {
      candidate.rule_name = name_;
      candidate.sub_graph = candidate.sub_graph.Wrapped({{"Composite", name_}});
    }
    return candidates;
  }

 private:
  std::string name_;
  PartitionRulePtr sub_rule_;
};

class PrimitivePartitionRule : public PartitionRule {
 public:
  explicit PrimitivePartitionRule(PartitionRulePtr sub_rule) : sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Attrs attrs{{kAttrPrimitive, 1}};
    if (!toolchain.is_native()) attrs.Set(kAttrCompiler, toolchain.name());
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    for (CandidatePartition& candidate : candidates) candidate.sub_graph = candidate.sub_graph.Wrapped(attrs);
    return candidates;
  }

 private:
  PartitionRulePtr sub_rule_;
};

class UnionPartitionRule : public PartitionRule {
 public:
  explicit UnionPartitionRule(std::vector<PartitionRulePtr> sub_rules) : sub_rules_(std::move(sub_rules)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    for (const PartitionRulePtr& rule : sub_rules_) {
      Candidates candidates = rule->AllCandidates(graph, toolchain, log);
      std::move(candidates.begin(), candidates.end(), std::back_inserter(result));
    }
    return result;
  }

 private:
  std::vector<PartitionRulePtr> sub_rules_;
};

class OnlyValidPartitionRule : public PartitionRule {
 public:
  OnlyValidPartitionRule(SubGraphConfig config, PartitionRulePtr sub_rule)
      : config_(config), sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    std::erase_if(candidates, [&](const CandidatePartition& candidate) {
      return !candidate.sub_graph.CheckValid(graph, config_).ok();
    });
    return candidates;
  }

 private:
  SubGraphConfig config_;
  PartitionRulePtr sub_rule_;
};

class TrimFreeEndsPartitionRule : public PartitionRule {
 public:
  explicit TrimFreeEndsPartitionRule(PartitionRulePtr sub_rule) : sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    std::set<std::vector<int>> seen;
    for (const CandidatePartition& candidate : candidates) seen.insert(candidate.sub_graph.members());
    Candidates result;
    for (CandidatePartition& candidate : candidates) {
      std::vector<int> trimmed = Trim(graph, candidate.sub_graph);
      if (trimmed.size() == candidate.sub_graph.members().size()) {
        result.push_back(std::move(candidate));
      } else if (!trimmed.empty() && seen.insert(trimmed).second) {
        SubGraph sub_graph(graph, std::move(trimmed));
        sub_graph.nested = std::move(candidate.sub_graph.nested);
        result.push_back({candidate.rule_name, std::move(sub_graph), &toolchain});
      }
    }
    return result;
  }

 private:
  static bool IsFree(const DataflowGraph& graph, int index) {
    const ExprKind kind = graph.node(index).expr->kind();
    const OpDef* op = graph.OpAt(index);
    return kind == ExprKind::kTuple || kind == ExprKind::kTupleGetItem || (op != nullptr && op->is_reshape);
  }

  /// The members without free ones at the ends; those in nested sub-graphs stay.
  static std::vector<int> Trim(const DataflowGraph& graph, const SubGraph& sub_graph) {
    IndexSet inside = sub_graph.inside();
    IndexSet fixed(graph.size());
    for (const NestedSubGraph& nested : sub_graph.nested) fixed = fixed | IndexSet(graph.size(), nested.inside);
    const auto is_inside = [&](int other) { return inside.Contains(other); };
    const auto drop = [&](int index, const std::vector<int>& neighbours) {
      if (fixed.Contains(index) || !IsFree(graph, index)) return;
      if (std::none_of(neighbours.begin(), neighbours.end(), is_inside)) inside.Remove(index);
    };
    const std::vector<int>& members = sub_graph.members();
    for (int index : members) drop(index, graph.node(index).inputs);
    for (auto it = members.rbegin(); it != members.rend(); ++it) drop(*it, graph.node(*it).outputs);
    return inside.Members();
  }

  PartitionRulePtr sub_rule_;
};

}  // namespace

PartitionRulePtr CompositeRule(std::string name, PartitionRulePtr sub_rule) {
  return std::make_unique<CompositePartitionRule>(std::move(name), std::move(sub_rule));
}
PartitionRulePtr PrimitiveRule(PartitionRulePtr sub_rule) {
  return std::make_unique<PrimitivePartitionRule>(std::move(sub_rule));
}
PartitionRulePtr UnionRule(std::vector<PartitionRulePtr> sub_rules) {
  return std::make_unique<UnionPartitionRule>(std::move(sub_rules));
}
PartitionRulePtr OnlyValidRule(SubGraphConfig config, PartitionRulePtr sub_rule) {
  return std::make_unique<OnlyValidPartitionRule>(config, std::move(sub_rule));
}
PartitionRulePtr TrimFreeEndsRule(PartitionRulePtr sub_rule) {
  return std::make_unique<TrimFreeEndsPartitionRule>(std::move(sub_rule));
}

}  // namespace collage
