// proposed_rule.cc: partitions that a toolchain makes itself.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "partition/rules/rule_kinds.h"

namespace collage {
namespace {

class ProposedPartitionRule : public PartitionRule {
 public:
  explicit ProposedPartitionRule(PartitionRulePtr sub_rule) : sub_rule_(std::move(sub_rule)) {}

  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain,
                                                RuleLog& log) const override {
    std::vector<CandidatePartition> candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    std::set<std::vector<int>> seen;
    for (const CandidatePartition& candidate : candidates) seen.insert(KeyOf(candidate.sub_graph));
    for (const std::vector<Expr>& expressions : toolchain.Proposals(graph.function())) {
      std::vector<int> inside;
      for (const Expr& expr : expressions) inside.push_back(graph.IndexOf(expr));
      std::ranges::sort(inside);
      SubGraph sub_graph(graph, std::move(inside));
      if (sub_graph.exit().empty() || !seen.insert(KeyOf(sub_graph)).second) continue;
      if (const Result<void> valid = sub_graph.CheckValid(graph, {.allow_taps = true}); !valid.ok()) {
        LogRefusal(log, graph, "proposed", &sub_graph, valid.reason());
        continue;
      }
      candidates.push_back({"proposed", std::move(sub_graph), &toolchain});
    }
    return candidates;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("Proposed", "");
    json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  PartitionRulePtr sub_rule_;
};

}  // namespace

const RuleKind kProposedKind{
    "Proposed", {"sub_rule"}, [](const JsonReader& json, std::string) { return ProposedRule(ReadSubRule(json)); }};

PartitionRulePtr ProposedRule(PartitionRulePtr sub_rule) {
  return std::make_unique<ProposedPartitionRule>(std::move(sub_rule));
}

}  // namespace collage
