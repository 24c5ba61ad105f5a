// fuse_ops_rule.cc: the functions that FuseOps would make, as candidates.
#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>

#include "partition/fusion_groups.h"
#include "partition/rules/rule_kinds.h"

namespace collage {
namespace {

class FuseOpsPartitionRule : public PartitionRule {
 public:
  FuseOpsPartitionRule(int max_calls, std::string name) : max_calls_(max_calls), name_(std::move(name)) {}

  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain,
                                                RuleLog& log) const override {
    std::vector<CandidatePartition> result;
    for (std::vector<int>& group : FusionGroups(graph, max_calls_)) {
      const auto calls = [&](int index) { return graph.OpAt(index) != nullptr; };
      if (std::ranges::count_if(group, calls) < 2) continue;
      SubGraph sub_graph(graph, std::move(group));
      std::string name = NestedName(name_, sub_graph.OperatorLabel(graph));
      const Result<void> taken = TakesAll(graph, sub_graph, toolchain);
      if (taken.ok()) {
        result.push_back({std::move(name), std::move(sub_graph), &toolchain});
      } else {
        LogRefusal(log, graph, name, &sub_graph, taken.reason());
      }
    }
    return result;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("FuseOps", name_);
    json["max_calls"] = max_calls_;
    return json;
  }

 private:
  static Result<void> TakesAll(const DataflowGraph& graph, const SubGraph& sub_graph, const Toolchain& toolchain) {
    for (const int index : sub_graph.members()) {
      if (graph.OpAt(index) == nullptr) continue;
      Result<void> answer = toolchain.SupportsCall(*As<CallNode>(graph.node(index).expr));
      if (!answer.ok()) return answer;
    }
    return {};
  }

  int max_calls_;
  std::string name_;
};

}  // namespace

const RuleKind kFuseOpsKind{"FuseOps", {"max_calls"}, [](const JsonReader& json, std::string name) {
                              return FuseOpsRule(json.IntOr("max_calls", kMaxFusedCalls, 1, INT_MAX), std::move(name));
                            }};

PartitionRulePtr FuseOpsRule(int max_calls, std::string name) {
  return std::make_unique<FuseOpsPartitionRule>(max_calls, std::move(name));
}

}  // namespace collage
