// max_coalesce_rule.cc: adjacent kernels of one toolchain become one partition (RFC 0.7, "MaxCoalesceFusionRule").
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "partition/coalesce.h"
#include "partition/rewrite.h"
#include "partition/rules/rule_kinds.h"

namespace collage {
namespace {

class MaxCoalescePartitionRule : public PartitionRule {
 public:
  MaxCoalescePartitionRule(SubGraphConfig config, PartitionRulePtr sub_rule, std::string name)
      : config_(config), sub_rule_(std::move(sub_rule)), name_(std::move(name)) {}

  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain,
                                                RuleLog& log) const override {
    const std::vector<CandidatePartition> chosen = Disjoint(graph, sub_rule_->AllCandidates(graph, toolchain, log));
    std::vector<CandidatePartition> merged = MaxCoalesce(graph, chosen, config_);
    for (CandidatePartition& candidate : merged) candidate.rule_name = NestedName(name_, candidate.rule_name);
    return merged;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("MaxCoalesce", name_);
    json["config"] = collage::ToJson(config_);
    json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  /// Larger ones first, each that can still be run beside those taken before.
  static std::vector<CandidatePartition> Disjoint(const DataflowGraph& graph,
                                                  std::vector<CandidatePartition> candidates) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const CandidatePartition& a, const CandidatePartition& b) {
                       const size_t x = a.sub_graph.members().size(), y = b.sub_graph.members().size();
                       return x != y ? x > y : a.sub_graph.members() < b.sub_graph.members();
                     });
    IndexSet taken(graph.size());
    std::vector<CandidatePartition> chosen;
    for (CandidatePartition& candidate : candidates) {
      IndexSet members(graph.size());
      for (int index : candidate.sub_graph.members()) {
        if (!graph.IsCopied(index)) members.Add(index);
      }
      if (members.Intersects(taken) || !candidate.sub_graph.CheckRunnable(graph).ok()) continue;
      taken = taken | members;
      chosen.push_back(std::move(candidate));
    }
    KeepOrderable(graph, chosen);
    std::sort(chosen.begin(), chosen.end(), [](const CandidatePartition& a, const CandidatePartition& b) {
      return a.sub_graph.members() < b.sub_graph.members();
    });
    return chosen;
  }

  /// Drops what depends on others in a circle; rare, so one after the other.
  static void KeepOrderable(const DataflowGraph& graph, std::vector<CandidatePartition>& chosen) {
    std::vector<const SubGraph*> sub_graphs;
    for (const CandidatePartition& candidate : chosen) sub_graphs.push_back(&candidate.sub_graph);
    if (CanBeOrdered(graph, sub_graphs)) return;
    sub_graphs.clear();
    std::erase_if(chosen, [&](const CandidatePartition& candidate) {
      std::vector<const SubGraph*> with = sub_graphs;
      with.push_back(&candidate.sub_graph);
      if (!CanBeOrdered(graph, with)) return true;
      sub_graphs = std::move(with);
      return false;
    });
  }

  SubGraphConfig config_;
  PartitionRulePtr sub_rule_;
  std::string name_;
};

PartitionRulePtr ReadMaxCoalesce(const JsonReader& json, std::string name) {
  const SubGraphConfig any{.allow_taps = true};
  return MaxCoalesceRule(json.Has("config") ? ReadSubGraphConfig(json.At("config")) : any, ReadSubRule(json),
                         std::move(name));
}

}  // namespace

const RuleKind kMaxCoalesceKind{"MaxCoalesce", {"config", "sub_rule"}, ReadMaxCoalesce};

PartitionRulePtr MaxCoalesceRule(SubGraphConfig config, PartitionRulePtr sub_rule, std::string name) {
  return std::make_unique<MaxCoalescePartitionRule>(config, std::move(sub_rule), std::move(name));
}

std::vector<CandidatePartition> MaxCoalesce(const DataflowGraph& graph,
                                            const std::vector<CandidatePartition>& candidates,
                                            const SubGraphConfig& config) {
  std::vector<const SubGraph*> parts;
  for (const CandidatePartition& candidate : candidates) parts.push_back(&candidate.sub_graph);
  const auto union_of = [&](const std::vector<int>& numbers) {
    std::vector<const SubGraph*> chosen;
    for (int number : numbers) chosen.push_back(parts[number]);
    return UnionOf(graph, chosen);
  };
  const bool is_limited = config.max_exits > 0 || config.max_depth > 0 || !config.allow_taps;
  const auto is_of_one = [&](int a, int b) {
    return candidates[a].toolchain == candidates[b].toolchain && candidates[a].spec == candidates[b].spec;
  };
  const auto last_of = [&](int number) { return parts[number]->last(); };
  const std::vector<int> group =
      CoalesceGroups(graph, parts, [&](const std::vector<int>& a, const std::vector<int>& b) {
        if (!is_of_one(a[0], b[0]) || !graph.AreTogether(last_of(a[0]), last_of(b[0]))) return false;
        if (graph.node(last_of(a[0])).place != graph.node(last_of(b[0])).place) return false;
        if (!is_limited) return true;
        std::vector<int> both = a;
        both.insert(both.end(), b.begin(), b.end());
        std::sort(both.begin(), both.end());
        return union_of(both).CheckValid(graph, config).ok();
      });
  std::map<int, std::vector<int>> members_of;  // group → parts, ascending
  for (size_t i = 0; i < group.size(); ++i) members_of[group[i]].push_back(static_cast<int>(i));
  std::vector<CandidatePartition> result;
  for (const auto& [first, merged] : members_of) {
    std::string name;
    for (int part : merged) name += (name.empty() ? "" : "+") + candidates[part].rule_name;
    result.push_back({std::move(name), union_of(merged), candidates[first].toolchain, candidates[first].spec});
  }
  return result;
}

}  // namespace collage
