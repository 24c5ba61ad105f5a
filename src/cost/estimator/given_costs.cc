// given_costs.cc: reading costs, and the formula.
#include "cost/estimator/given_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "collage/ir/structural.h"
#include "partition/extract.h"
#include "support/json_reader.h"

namespace collage {
namespace {

double ReadNumber(const JsonReader& json, const char* what) {
  const double number = json.Number();
  if (!(number >= 0) || std::isinf(number)) json.Fail(fmt::format("{} is not negative, got {}", what, number));
  return number;
}

/// A cost: a number that is not negative, "invalid" (or "inf") or "unknown".
Cost ReadCost(const JsonReader& json) {
  if (!json.IsString()) return Cost::Value(ReadNumber(json, "a cost"));
  const std::string text = json.String();
  if (text == "invalid" || text == "inf") return Cost::Invalid();
  if (text == "unknown") return Cost::Unknown();
  json.Fail(fmt::format("'{}' is no cost", text), "a number, \"invalid\" or \"unknown\"");
}

}  // namespace

GivenCosts::GivenCosts(const JsonText& text, CandidateCost estimate) : estimate_(std::move(estimate)) {
  const JsonReader json = JsonReader::Parse(text.text, text.file);
  json.AllowOnly({"op_cost", "fusion_benefit", "unsupported", "overrides", "transition_penalty", "conversion", "copy",
                  "copy_byte", "coalesce"});
  if (json.Has("op_cost")) {
    for (const auto& [target, costs] : json.At("op_cost").Fields()) {
      std::map<std::string, Cost>& by_op = op_costs_[target];
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
  fusion_benefit_ = json.Has("fusion_benefit") ? ReadNumber(json.At("fusion_benefit"), "a fusion benefit") : 1;
  transition_penalty_ = json.Has("transition_penalty") ? ReadNumber(json.At("transition_penalty"), "a penalty") : 0;
  conversion_ = json.Has("conversion") ? ReadNumber(json.At("conversion"), "what a conversion costs") : 0;
  copy_ = json.Has("copy") ? ReadNumber(json.At("copy"), "what a copy costs") : 0;
  copy_byte_ = json.Has("copy_byte") ? ReadNumber(json.At("copy_byte"), "what copying a byte costs") : 0;
  coalesce_ = json.BoolOr("coalesce", false);
}

std::set<std::string> GivenCosts::Targets() const {
  std::set<std::string> targets;
  for (const auto& [target, _] : op_costs_) targets.insert(target);
  for (const auto& [target, _] : unsupported_) targets.insert(target);
  for (const auto& [key, _] : overrides_) targets.insert(key.first);
  return targets;
}

Cost GivenCosts::OpCost(const std::string& target, const std::string& op) const {
  const auto costs = op_costs_.find(target);
  const Cost otherwise = Cost::Value(1);
  if (costs == op_costs_.end()) return otherwise;
  for (const std::string& key : {op, std::string("*")}) {
    if (const auto cost = costs->second.find(key); cost != costs->second.end()) return cost->second;
  }
  return otherwise;
}

Cost GivenCosts::Estimated(const std::string& target, const DataflowGraph& graph, const SubGraph& sub_graph) const {
  const Function function = Extract(graph, sub_graph).function;
  const std::pair key(target, StructuralHash(function));
  if (const auto known = estimated_.find(key); known != estimated_.end()) return known->second;
  const double seconds = estimate_(function, target);
  if (seconds < 0) {
    throw Error(ErrorCategory::kInput, fmt::format("a cost is not negative, got {} for '{}' on '{}'", seconds,
                                                   sub_graph.OperatorLabel(graph), target));
  }
  return estimated_[key] = Cost::FromDouble(seconds);
}

Cost GivenCosts::CostOf(const std::string& target, const DataflowGraph& graph, const SubGraph& sub_graph) const {
  const std::vector<int>& inside = sub_graph.members();
  if (const auto it = overrides_.find({target, inside}); it != overrides_.end()) return it->second;
  if (target == "host") return Cost::Zero();
  if (!WhyInfinite(target, graph, sub_graph).empty()) return Cost::Invalid();
  if (estimate_) return Estimated(target, graph, sub_graph);
  Cost cost;
  double benefit = 1;
  for (auto index = inside.rbegin(); index != inside.rend(); ++index) {
    const OpDef* op = graph.OpAt(*index);
    if (op == nullptr) continue;
    cost += OpCost(target, op->name) * benefit;
    benefit *= fusion_benefit_;
  }
  return cost;
}

std::string GivenCosts::WhyInfinite(const std::string& target, const DataflowGraph& graph,
                                    const SubGraph& sub_graph) const {
  const auto ops = unsupported_.find(target);
  if (ops == unsupported_.end()) return "";
  for (int index : sub_graph.members()) {
    const OpDef* op = graph.OpAt(index);
    if (op != nullptr && ops->second.contains(op->name)) return fmt::format("'{}' is unsupported", op->name);
  }
  return "";
}

}  // namespace collage
