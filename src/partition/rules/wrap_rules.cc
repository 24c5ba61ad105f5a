// wrap_rules.cc: rules that wrap, join lists, or drop candidates without making new sets of nodes.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "partition/rules/rule_kinds.h"
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
      candidate.rule_name = NestedName(name_, candidate.rule_name);
      candidate.sub_graph = candidate.sub_graph.Wrapped({{"Composite", name_}});
    }
    return candidates;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("Composite", name_);
    json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  std::string name_;
  PartitionRulePtr sub_rule_;
};

class PrimitivePartitionRule : public PartitionRule {
 public:
  PrimitivePartitionRule(PartitionRulePtr sub_rule, std::string name)
      : sub_rule_(std::move(sub_rule)), name_(std::move(name)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Attrs attrs{{kAttrPrimitive, 1}};
    if (std::string compiler = CompilerOf(toolchain); !compiler.empty()) attrs.Set(kAttrCompiler, std::move(compiler));
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    for (CandidatePartition& candidate : candidates) {
      candidate.rule_name = NestedName(name_, candidate.rule_name);
      candidate.sub_graph = candidate.sub_graph.Wrapped(attrs);
    }
    return candidates;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("Primitive", name_);
    json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  PartitionRulePtr sub_rule_;
  std::string name_;
};

class UnionPartitionRule : public PartitionRule {
 public:
  UnionPartitionRule(std::vector<PartitionRulePtr> sub_rules, std::string name)
      : sub_rules_(std::move(sub_rules)), name_(std::move(name)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    for (const PartitionRulePtr& rule : sub_rules_) {
      Candidates candidates = rule->AllCandidates(graph, toolchain, log);
      for (CandidatePartition& candidate : candidates) {
        candidate.rule_name = NestedName(name_, candidate.rule_name);
        result.push_back(std::move(candidate));
      }
    }
    return result;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("Union", name_);
    json["sub_rules"] = RuleJson::array();
    for (const PartitionRulePtr& rule : sub_rules_) json["sub_rules"].push_back(rule->ToJson());
    return json;
  }

 private:
  std::vector<PartitionRulePtr> sub_rules_;
  std::string name_;
};

class OnlyValidPartitionRule : public PartitionRule {
 public:
  OnlyValidPartitionRule(SubGraphConfig config, PartitionRulePtr sub_rule, std::string name)
      : config_(config), sub_rule_(std::move(sub_rule)), name_(std::move(name)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    std::erase_if(candidates, [&](const CandidatePartition& candidate) {
      const Result<void> valid = candidate.sub_graph.CheckValid(graph, config_);
      if (!valid.ok()) LogRefusal(log, graph, candidate.rule_name, &candidate.sub_graph, valid.reason());
      return !valid.ok();
    });
    for (CandidatePartition& candidate : candidates) candidate.rule_name = NestedName(name_, candidate.rule_name);
    return candidates;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("OnlyValid", name_);
    json["config"] = collage::ToJson(config_);
    json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  SubGraphConfig config_;
  PartitionRulePtr sub_rule_;
  std::string name_;
};

class TrimFreeEndsPartitionRule : public PartitionRule {
 public:
  explicit TrimFreeEndsPartitionRule(PartitionRulePtr sub_rule) : sub_rule_(std::move(sub_rule)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    std::set<std::vector<int>> seen;
    for (const CandidatePartition& candidate : candidates) seen.insert(KeyOf(candidate.sub_graph));
    const IndexSet left_to_readers = LeftToReaders(graph, candidates);
    Candidates result;
    for (CandidatePartition& candidate : candidates) {
      std::vector<int> trimmed = Trim(graph, candidate.sub_graph, left_to_readers);
      if (trimmed.size() == candidate.sub_graph.members().size()) {
        result.push_back(std::move(candidate));
      } else if (!trimmed.empty() && seen.insert(KeyOf(trimmed, candidate.sub_graph.nested)).second) {
        SubGraph sub_graph(graph, std::move(trimmed));
        sub_graph.nested = std::move(candidate.sub_graph.nested);
        result.push_back({candidate.rule_name, std::move(sub_graph), &toolchain});
      }
    }
    return result;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("TrimFreeEnds", "");
    json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  static bool IsFree(const DataflowGraph& graph, int index) {
    const ExprKind kind = graph.node(index).expr->kind();
    const OpDef* op = graph.OpAt(index);
    return kind == ExprKind::kTuple || kind == ExprKind::kTupleGetItem || (op != nullptr && op->is_reshape);
  }

  /// Returns conversions of 8-bit integers to floats that a candidate contains with their readers: a boundary in front
  /// of them passes bytes, with which the reader may compute.
  static IndexSet LeftToReaders(const DataflowGraph& graph, const Candidates& candidates) {
    IndexSet left(graph.size());
    for (const CandidatePartition& candidate : candidates) {
      for (const int index : candidate.sub_graph.members()) {
        const OpDef* op = graph.OpAt(index);
        if (op == nullptr || op->name != "qnn.dequantize") continue;
        const auto is_inside = [&](int reader) { return candidate.sub_graph.inside().Contains(reader); };
        if (std::ranges::any_of(graph.node(index).outputs, is_inside)) left.Add(index);
      }
    }
    return left;
  }

  /// The members without free ones at the ends, and without those at which it ends of `left_to_readers`, unless there
  /// is nothing else; those in nested sub-graphs stay.
  static std::vector<int> Trim(const DataflowGraph& graph, const SubGraph& sub_graph, const IndexSet& left_to_readers) {
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
    for (auto it = members.rbegin(); it != members.rend(); ++it) {
      const std::vector<int>& readers = graph.node(*it).outputs;
      drop(*it, readers);
      const auto is_made_inside = [&](int input) { return graph.OpAt(input) != nullptr && is_inside(input); };
      const bool is_end =
          std::ranges::none_of(readers, is_inside) && std::ranges::any_of(graph.node(*it).inputs, is_made_inside);
      if (is_end && left_to_readers.Contains(*it) && !fixed.Contains(*it)) inside.Remove(*it);
    }
    return inside.Members();
  }

  PartitionRulePtr sub_rule_;
};

PartitionRulePtr ReadComposite(const JsonReader& json, std::string) {
  return CompositeRule(json.At("name").String(), ReadSubRule(json));
}
PartitionRulePtr ReadPrimitive(const JsonReader& json, std::string name) {
  return PrimitiveRule(ReadSubRule(json), std::move(name));
}
PartitionRulePtr ReadUnion(const JsonReader& json, std::string name) {
  std::vector<PartitionRulePtr> sub_rules;
  for (const JsonReader& rule : json.At("sub_rules").Items()) sub_rules.push_back(ReadRule(rule));
  return UnionRule(std::move(sub_rules), std::move(name));
}
PartitionRulePtr ReadOnlyValid(const JsonReader& json, std::string name) {
  return OnlyValidRule(ReadSubGraphConfig(json.At("config")), ReadSubRule(json), std::move(name));
}
PartitionRulePtr ReadTrimFreeEnds(const JsonReader& json, std::string) { return TrimFreeEndsRule(ReadSubRule(json)); }

}  // namespace

const RuleKind kCompositeKind{"Composite", {"sub_rule"}, ReadComposite};
const RuleKind kPrimitiveKind{"Primitive", {"sub_rule"}, ReadPrimitive};
const RuleKind kUnionKind{"Union", {"sub_rules"}, ReadUnion};
const RuleKind kOnlyValidKind{"OnlyValid", {"config", "sub_rule"}, ReadOnlyValid};
const RuleKind kTrimFreeEndsKind{"TrimFreeEnds", {"sub_rule"}, ReadTrimFreeEnds};

PartitionRulePtr CompositeRule(std::string name, PartitionRulePtr sub_rule) {
  return std::make_unique<CompositePartitionRule>(std::move(name), std::move(sub_rule));
}
PartitionRulePtr PrimitiveRule(PartitionRulePtr sub_rule, std::string name) {
  return std::make_unique<PrimitivePartitionRule>(std::move(sub_rule), std::move(name));
}
PartitionRulePtr UnionRule(std::vector<PartitionRulePtr> sub_rules, std::string name) {
  return std::make_unique<UnionPartitionRule>(std::move(sub_rules), std::move(name));
}
PartitionRulePtr OnlyValidRule(SubGraphConfig config, PartitionRulePtr sub_rule, std::string name) {
  return std::make_unique<OnlyValidPartitionRule>(config, std::move(sub_rule), std::move(name));
}
PartitionRulePtr TrimFreeEndsRule(PartitionRulePtr sub_rule) {
  return std::make_unique<TrimFreeEndsPartitionRule>(std::move(sub_rule));
}

}  // namespace collage
