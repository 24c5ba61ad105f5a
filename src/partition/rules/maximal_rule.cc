// maximal_rule.cc: the largest regions of supported nodes that do not depend on themselves.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "partition/rules/rule_kinds.h"

namespace collage {
namespace {

class MaximalPartitionRule : public PartitionRule {
 public:
  explicit MaximalPartitionRule(PartitionRulePtr sub_rule) : sub_rule_(std::move(sub_rule)) {}

  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain,
                                                RuleLog& log) const override {
    std::vector<CandidatePartition> candidates = sub_rule_->AllCandidates(graph, toolchain, log);
    std::vector<char> inside(graph.size());
    for (const CandidatePartition& candidate : candidates) {
      for (int index : candidate.sub_graph.members()) inside[index] = 1;
    }
    AddGlue(graph, inside);
    std::set<std::vector<int>> seen;
    for (const CandidatePartition& candidate : candidates) seen.insert(KeyOf(candidate.sub_graph));
    for (std::vector<int>& region : Regions(graph, inside)) {
      SubGraph sub_graph(graph, std::move(region));
      if (sub_graph.exit().empty() || !sub_graph.CheckValid(graph, {.allow_taps = true}).ok()) continue;
      if (!KeepWrapped(graph, candidates, sub_graph) || !seen.insert(KeyOf(sub_graph)).second) continue;
      candidates.push_back({"maximal", std::move(sub_graph), &toolchain});
    }
    return candidates;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("Maximal", "");
    json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  /// Tuples and projections between supported nodes, unless they are the function's result.
  static void AddGlue(const DataflowGraph& graph, std::vector<char>& inside) {
    const auto supported = [&](int index) { return inside[index] != 0 || graph.IsInlinedInPartitions(index); };
    const std::vector<char> calls = inside;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      const auto& node = graph.node(index);
      const ExprKind kind = node.expr->kind();
      if (kind != ExprKind::kTuple && kind != ExprKind::kTupleGetItem) continue;
      // A projection stays with its tuple; a tuple is inside when all who read it are.
      const bool takes_all = std::all_of(node.inputs.begin(), node.inputs.end(), supported);
      const auto reads = [&](int user) { return calls[user] != 0; };
      const bool all_read = std::all_of(node.outputs.begin(), node.outputs.end(), reads);
      if (takes_all && (kind == ExprKind::kTupleGetItem || all_read)) inside[index] = 1;
    }
  }

  /// A node's generation counts how often a path to it left the supported nodes. Nodes of one generation are a region:
  /// a path that leaves one never comes back to it, and regions depend on earlier ones only.
  static std::vector<std::vector<int>> Regions(const DataflowGraph& graph, const std::vector<char>& inside) {
    std::vector<size_t> generation(graph.size(), 0);
    std::vector<std::vector<int>> regions;
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      for (int input : graph.node(index).inputs) {
        if (graph.IsInlinedInPartitions(input)) continue;
        const bool leaves = inside[input] != 0 && inside[index] == 0;
        generation[index] = std::max(generation[index], generation[input] + (leaves ? 1 : 0));
      }
      if (inside[index] == 0 || graph.IsCopied(index)) continue;
      if (regions.size() <= generation[index]) regions.resize(generation[index] + 1);
      regions[generation[index]].push_back(index);
    }
    std::erase_if(regions, [](const std::vector<int>& region) { return region.empty(); });
    return regions;
  }

  /// If sub-candidates are wrapped, the whole sub-graph must be: by the largest that fit, without overlap.
  static bool KeepWrapped(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                          SubGraph& region) {
    std::vector<const CandidatePartition*> by_size;
    for (const CandidatePartition& candidate : candidates) {
      if (!candidate.sub_graph.nested.empty()) by_size.push_back(&candidate);
    }
    if (by_size.empty()) return true;
    std::stable_sort(by_size.begin(), by_size.end(), [](const CandidatePartition* a, const CandidatePartition* b) {
      return a->sub_graph.members().size() > b->sub_graph.members().size();
    });
    IndexSet left = region.inside();
    for (const CandidatePartition* candidate : by_size) {
      std::vector<int> work;
      for (int index : candidate->sub_graph.members()) {
        if (!graph.IsCopied(index)) work.push_back(index);
      }
      const IndexSet members(graph.size(), work);
      if (!members.IsSubset(left)) continue;
      left = left - members;
      for (NestedSubGraph nested : candidate->sub_graph.nested) {
        std::erase_if(nested.inside, [&](int index) { return graph.IsCopied(index); });
        region.nested.push_back(std::move(nested));
      }
    }
    const std::vector<int> bare = left.Members();
    return std::none_of(bare.begin(), bare.end(), [&](int index) { return graph.OpAt(index) != nullptr; });
  }

  PartitionRulePtr sub_rule_;
};

}  // namespace

const RuleKind kMaximalKind{
    "Maximal", {"sub_rule"}, [](const JsonReader& json, std::string) { return MaximalRule(ReadSubRule(json)); }};

PartitionRulePtr MaximalRule(PartitionRulePtr sub_rule) {
  return std::make_unique<MaximalPartitionRule>(std::move(sub_rule));
}

}  // namespace collage
