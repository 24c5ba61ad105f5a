// given_costs.cc: reading costs, and the formula.
#include "inspect/given_costs.h"

#include <fmt/format.h>

#include <climits>
#include <limits>

#include "collage/extract.h"
#include "support/json_reader.h"

namespace collage {
namespace {

/// A cost: a number that is not negative, "invalid" (or "inf") or "unknown".
double ReadCost(const JsonReader& json) {
  if (json.IsString()) {
    const std::string text = json.String();
    if (text == "invalid" || text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "unknown") return std::numeric_limits<double>::quiet_NaN();
    json.Fail(fmt::format("'{}' is no cost", text), "a number, \"invalid\" or \"unknown\"");
  }
  const double cost = json.Number();
  if (!(cost >= 0)) json.Fail(fmt::format("a cost is not negative, got {}", cost));
  return cost;
}

}  // namespace

GivenCosts::GivenCosts(const JsonText& text, CandidateCost estimate) : estimate_(std::move(estimate)) {
  const JsonReader json = JsonReader::Parse(text.text, text.file);
  json.AllowOnly({"op_cost", "fusion_benefit", "unsupported", "overrides", "transition_penalty", "coalesce"});
  if (json.Has("op_cost")) {
    for (const auto& [target, costs] : json.At("op_cost").Fields()) {
      std::map<std::string, double>& by_op = op_costs_[target];
      if (!costs.IsObject()) {
        by_op["*"] = ReadCost(costs);
        continue;
      }
      for (const auto& [op, cost] : costs.Fields()) by_op[op] = ReadCost(cost);
    }
  }
  if (json.Has("unsupported")) {
    for (const auto& [target, ops] : json.At("unsupported").Fields()) {
      for (const JsonReader& op : ops.Items()) unsupported_[target].insert(op.String());
    }
  }
  if (json.Has("overrides")) {
    for (const JsonReader& one : json.At("overrides").Items()) {
      one.AllowOnly({"target", "inside", "cost"});
      std::vector<int> inside;
      for (const JsonReader& index : one.At("inside").Items()) inside.push_back(index.Int(0, INT_MAX));
      std::sort(inside.begin(), inside.end());
      overrides_[{one.At("target").String(), std::move(inside)}] = ReadCost(one.At("cost"));
    }
  }
  fusion_benefit_ = json.Has("fusion_benefit") ? ReadCost(json.At("fusion_benefit")) : 1;
  transition_penalty_ = json.Has("transition_penalty") ? ReadCost(json.At("transition_penalty")) : 0;
  coalesce_ = json.BoolOr("coalesce", false);
}

double GivenCosts::OpCost(const std::string& target, const std::string& op) const {
  const auto costs = op_costs_.find(target);
  if (costs == op_costs_.end()) return 1;
  for (const std::string& key : {op, std::string("*")}) {
    if (const auto cost = costs->second.find(key); cost != costs->second.end()) return cost->second;
  }
  return 1;
}

double GivenCosts::Estimated(const DataflowGraph& graph, const CandidatePartition& candidate) const {
  const std::string target = candidate.toolchain->name();
  const auto [known, is_new] = estimated_.try_emplace({target, candidate.sub_graph.members()}, 0);
  if (!is_new) return known->second;
  known->second = estimate_(Extract(graph, candidate.sub_graph).function, target);
  if (known->second < 0) {
    throw Error(ErrorCategory::kInput, fmt::format("a cost is not negative, got {} for '{}' on '{}'", known->second,
                                                   candidate.sub_graph.OperatorLabel(graph), target));
  }
  return known->second;
}

double GivenCosts::CostOf(const DataflowGraph& graph, const CandidatePartition& candidate) const {
  const std::string target = candidate.toolchain->name();
  const std::vector<int>& inside = candidate.sub_graph.members();
  if (const auto it = overrides_.find({target, inside}); it != overrides_.end()) return it->second;
  if (target == "host") return 0;
  if (!WhyInfinite(graph, candidate).empty()) return std::numeric_limits<double>::infinity();
  if (estimate_) return Estimated(graph, candidate);
  double cost = 0;
  double benefit = 1;
  for (auto index = inside.rbegin(); index != inside.rend(); ++index) {
    const OpDef* op = graph.OpAt(*index);
    if (op == nullptr) continue;
    cost += OpCost(target, op->name) * benefit;
    benefit *= fusion_benefit_;
  }
  return cost;
}

std::string GivenCosts::WhyInfinite(const DataflowGraph& graph, const CandidatePartition& candidate) const {
  const auto ops = unsupported_.find(candidate.toolchain->name());
  if (ops == unsupported_.end()) return "";
  for (int index : candidate.sub_graph.members()) {
    const OpDef* op = graph.OpAt(index);
    if (op != nullptr && ops->second.contains(op->name)) return fmt::format("'{}' is unsupported", op->name);
  }
  return "";
}

}  // namespace collage
