// base_rules.cc: candidates straight from the dataflow graph.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/ops/annotation.h"
#include "partition/extract.h"
#include "partition/registered_rules.h"
#include "partition/rules/rule_kinds.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using Candidates = std::vector<CandidatePartition>;

class DFPatternPartitionRule : public PartitionRule {
 public:
  DFPatternPartitionRule(std::string name, DFPatternPtr pattern, std::function<Result<void>(const Function&)> predicate,
                         std::string predicate_name = "")
      : name_(std::move(name)),
        pattern_(std::move(pattern)),
        predicate_(std::move(predicate)),
        predicate_name_(std::move(predicate_name)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    PatternMatcher matcher(graph);
    for (int root = 0; root < static_cast<int>(graph.size()); ++root) {
      if (graph.node(root).is_in_primitive) continue;
      matcher.Match(*pattern_, root, [&](const std::vector<int>& inside) {
        SubGraph sub_graph(graph, inside);
        std::string name = name_.empty() ? sub_graph.Label(graph) : name_;
        if (predicate_) {
          const Result<void> satisfies = Satisfies(graph, sub_graph);
          if (!satisfies.ok()) return LogRefusal(log, graph, name, &sub_graph, satisfies.reason());
        }
        result.push_back({std::move(name), std::move(sub_graph), &toolchain});
      });
    }
    return result;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("DFPattern", name_);
    json["pattern"] = PatternText(*pattern_);
    if (!predicate_name_.empty()) json["predicate"] = predicate_name_;
    return json;
  }

 private:
  Result<void> Satisfies(const DataflowGraph& graph, const SubGraph& sub_graph) const {
    if (sub_graph.exit().empty()) return Reason{"nothing that it computes is used", "sub-graph"};
    const Result<void> valid = sub_graph.CheckValid(graph, {.max_exits = 1});
    return valid.ok() ? predicate_(Extract(graph, sub_graph).function) : valid;
  }

  std::string name_;
  DFPatternPtr pattern_;
  std::function<Result<void>(const Function&)> predicate_;
  std::string predicate_name_;  ///< as it is registered
};

class OpPredicatePartitionRule : public PartitionRule {
 public:
  OpPredicatePartitionRule(std::string attribute, std::string name)
      : attribute_(std::move(attribute)), name_(std::move(name)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    Candidates result;
    const Toolchain* judge = JudgeFor(toolchain);
    if (judge == nullptr) {
      LogRefusal(log, graph, attribute_, nullptr,
                 {fmt::format("no operator has a predicate '{}'", attribute_), attribute_});
      return result;
    }
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (graph.OpAt(index) == nullptr || graph.node(index).is_in_primitive) continue;
      const Result<void> supported = judge->SupportsCall(*As<CallNode>(graph.node(index).expr));
      SubGraph sub_graph(graph, {index});
      std::string name = NestedName(name_, graph.LabelAt(index));
      if (supported.ok()) {
        result.push_back({std::move(name), std::move(sub_graph), &toolchain});
      } else {
        LogRefusal(log, graph, name, &sub_graph, supported.reason());
      }
    }
    return result;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("OpPredicate", name_);
    if (!attribute_.empty()) json["attribute"] = attribute_;
    return json;
  }

  static constexpr std::string_view kPrefix = "target.";

 private:
  /// Null when there is none. A toolchain under options judges as they have it.
  const Toolchain* JudgeFor(const Toolchain& toolchain) const {
    if (attribute_.empty()) return &toolchain;
    const std::string wanted = attribute_.substr(kPrefix.size());
    const std::string name = toolchain.name();
    if (IsConfigured(name) && RegisteredName(name) == wanted) return &toolchain;
    return ToolchainRegistry::Global().Find(wanted);
  }

  std::string attribute_;
  std::string name_;
};

class OpCallByKindPartitionRule : public PartitionRule {
 public:
  explicit OpCallByKindPartitionRule(std::string name) : name_(std::move(name)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog&) const override {
    Candidates result;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (graph.OpAt(index) == nullptr || graph.node(index).is_in_primitive) continue;
      if (graph.KindAt(index) > OpPatternKind::kOutEWiseFusable) continue;
      result.push_back({NestedName(name_, graph.LabelAt(index)), SubGraph(graph, {index}), &toolchain});
    }
    return result;
  }

  RuleJson ToJson() const override { return RuleHead("OpCallByKind", name_); }

 private:
  std::string name_;
};

class HostPartitionRule : public PartitionRule {
 public:
  explicit HostPartitionRule(std::string name) : name_(std::move(name)) {}

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog&) const override {
    Candidates result;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (graph.node(index).is_in_primitive || NeedsToolchain(graph, index)) continue;
      result.push_back({NestedName(name_, graph.LabelAt(index)), SubGraph(graph, {index}), &toolchain});
    }
    return result;
  }

  RuleJson ToJson() const override { return RuleHead("Host", name_); }

 private:
  static bool NeedsToolchain(const DataflowGraph& graph, int index) {
    const OpDef* op = graph.OpAt(index);
    if (op == nullptr) return graph.LabelAt(index) == "call_prim";
    return op->name != "shape_of" && !SaysWhere(*op);
  }

  std::string name_;
};

class PatternTablePartitionRule : public PartitionRule {
 public:
  explicit PatternTablePartitionRule(const Toolchain& toolchain) : compiler_(toolchain.name()) {
    std::vector<PartitionRulePtr> rows;
    for (const PatternTableEntry& entry : toolchain.PatternTable()) rows.push_back(RowRule(entry));
    rows_ = UnionRule(std::move(rows));
  }

  Candidates AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain, RuleLog& log) const override {
    return rows_->AllCandidates(graph, toolchain, log);
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("PatternTable", "");
    json["compiler"] = compiler_;
    return json;
  }

 private:
  std::string compiler_;
  PartitionRulePtr rows_;
};

PartitionRulePtr ReadDFPattern(const JsonReader& json, std::string name) {
  const JsonReader pattern = json.At("pattern");
  std::string predicate_name = json.StringOr("predicate", "");
  PartitionPredicateFn predicate;
  if (!predicate_name.empty()) predicate = FindRegisteredPredicate(json.At("predicate"));
  try {
    return std::make_unique<DFPatternPartitionRule>(std::move(name), ParsePattern(pattern.String()),
                                                    std::move(predicate), std::move(predicate_name));
  } catch (const Error& error) {
    pattern.Fail(error.message(), error.hint());
  }
}

PartitionRulePtr ReadOpPredicate(const JsonReader& json, std::string name) {
  std::string attribute = json.StringOr("attribute", "");
  const std::string prefix(OpPredicatePartitionRule::kPrefix);
  if (!attribute.empty() && !attribute.starts_with(prefix)) {
    json.At("attribute").Fail(fmt::format("expected '{}NAME', got '{}'", prefix, attribute));
  }
  return OpPredicateRule(std::move(attribute), std::move(name));
}

PartitionRulePtr ReadPatternTable(const JsonReader& json, std::string) {
  const JsonReader compiler = json.At("compiler");
  const Toolchain* toolchain = ToolchainRegistry::Global().Find(compiler.String());
  if (toolchain == nullptr) {
    compiler.Fail(fmt::format("there is no toolchain '{}'", compiler.String()),
                  ToolchainRegistry::Global().HintFor(compiler.String()));
  }
  return PatternTableRule(*toolchain);
}

}  // namespace

const RuleKind kDFPatternKind{"DFPattern", {"pattern", "predicate"}, ReadDFPattern};
const RuleKind kOpPredicateKind{"OpPredicate", {"attribute"}, ReadOpPredicate};
const RuleKind kOpCallByKindKind{
    "OpCallByKind", {}, [](const JsonReader&, std::string name) { return OpCallByKindRule(std::move(name)); }};
const RuleKind kHostKind{"Host", {}, [](const JsonReader&, std::string name) { return HostRule(std::move(name)); }};
const RuleKind kPatternTableKind{"PatternTable", {"compiler"}, ReadPatternTable};

PartitionRulePtr RowRule(const PatternTableEntry& entry) {
  return CompositeRule(
      entry.name,
      OnlyValidRule({.max_exits = 1}, DFPatternRule(entry.name, ParsePattern(entry.pattern), entry.predicate)));
}

void LogRefusal(const RuleLog& log, const DataflowGraph& graph, const std::string& rule_name, const SubGraph* sub_graph,
                const Reason& reason) {
  if (log.on_refusal) log.on_refusal(sub_graph == nullptr ? "*" : sub_graph->OperatorLabel(graph), reason);
  if (log.on_refused_match) log.on_refused_match({rule_name, sub_graph, reason});
}

PartitionRulePtr DFPatternRule(std::string name, DFPatternPtr pattern,
                               std::function<Result<void>(const Function&)> predicate) {
  return std::make_unique<DFPatternPartitionRule>(std::move(name), std::move(pattern), std::move(predicate));
}
PartitionRulePtr OpPredicateRule(std::string attribute, std::string name) {
  return std::make_unique<OpPredicatePartitionRule>(std::move(attribute), std::move(name));
}
PartitionRulePtr OpCallByKindRule(std::string name) {
  return std::make_unique<OpCallByKindPartitionRule>(std::move(name));
}
PartitionRulePtr HostRule(std::string name) { return std::make_unique<HostPartitionRule>(std::move(name)); }
PartitionRulePtr PatternTableRule(const Toolchain& toolchain) {
  return std::make_unique<PatternTablePartitionRule>(toolchain);
}

}  // namespace collage
