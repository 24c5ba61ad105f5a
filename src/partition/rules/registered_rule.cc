// registered_rule.cc: rules whose candidates a function from outside of the tree finds (collage/partition_rules.h).
#include "partition/rules/registered_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "collage/support/error.h"
#include "partition/registered_rules.h"
#include "partition/rules/rule_kinds.h"

namespace collage {
namespace {

class RegisteredPartitionRule : public PartitionRule {
 public:
  RegisteredPartitionRule(RegisteredFunction function, PartitionRulePtr sub_rule, std::string name)
      : function_(std::move(function)), sub_rule_(std::move(sub_rule)), name_(std::move(name)) {}

  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain,
                                                RuleLog& log) const override {
    std::vector<CandidatePartition> known;
    if (sub_rule_ != nullptr) known = sub_rule_->AllCandidates(graph, toolchain, log);
    RegisteredFunction::Caller caller(function_, graph, toolchain);
    for (const CandidatePartition& candidate : known) caller.Tell(candidate);
    std::vector<CandidatePartition> found;
    for (CandidatePartition& candidate : caller.Ask()) {
      const Result<void> runnable = candidate.sub_graph.CheckRunnable(graph);
      if (runnable.ok()) {
        candidate.rule_name = NestedName(name_, candidate.rule_name);
        found.push_back(std::move(candidate));
      } else {
        LogRefusal(log, graph, candidate.rule_name, &candidate.sub_graph, runnable.reason());
      }
    }
    return found;
  }

  RuleJson ToJson() const override {
    RuleJson json = RuleHead("Registered", name_);
    function_.AddTo(json);
    if (sub_rule_ != nullptr) json["sub_rule"] = sub_rule_->ToJson();
    return json;
  }

 private:
  RegisteredFunction function_;
  PartitionRulePtr sub_rule_;
  std::string name_;
};

}  // namespace

RegisteredFunction RegisteredFunction::Read(const JsonReader& json) {
  const JsonReader name = json.At("function");
  return {name.String(), json.Has("options") ? json.At("options").value().dump() : "{}", FindRegisteredRule(name)};
}

void RegisteredFunction::AddTo(RuleJson& json) const {
  json["function"] = name;
  if (options != "{}") json["options"] = RuleJson::parse(options);
}

RegisteredFunction::Caller::Caller(const RegisteredFunction& function, const DataflowGraph& graph,
                                   const Toolchain& toolchain)
    : function_(function), graph_(graph), request_{graph.function(), toolchain, function.options} {
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) indices_[graph.node(index).expr.get()] = index;
}

void RegisteredFunction::Caller::Tell(const CandidatePartition& candidate) {
  RuleCandidate& told = request_.candidates.emplace_back();
  told.name = candidate.rule_name;
  for (const int index : candidate.sub_graph.members()) told.inside.push_back(graph_.node(index).expr);
  nested_.push_back(candidate.sub_graph.nested);
}

std::vector<CandidatePartition> RegisteredFunction::Caller::Ask() {
  std::vector<CandidatePartition> found;
  for (const RuleCandidate& one : function_.find(request_)) found.push_back(FromRule(one));
  request_.first_new = request_.candidates.size();
  return found;
}

CandidatePartition RegisteredFunction::Caller::FromRule(const RuleCandidate& candidate) const {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCategory::kInput, fmt::format("rule '{}' returned a candidate {}", function_.name, what));
  };
  if (candidate.inside.empty()) fail("with nothing inside");
  std::vector<int> inside;
  for (const Expr& expr : candidate.inside) {
    const auto it = indices_.find(expr.get());
    if (it == indices_.end()) fail("with an expression that is no node of the function");
    inside.push_back(it->second);
  }
  SubGraph sub_graph(graph_, std::move(inside));
  for (const size_t number : candidate.made_of) {
    if (number >= nested_.size()) fail(fmt::format("made of number {}, of {} candidates", number, nested_.size()));
    AddNested(sub_graph.nested, nested_[number]);
  }
  for (const NestedSubGraph& nested : sub_graph.nested) {
    if (!std::ranges::includes(sub_graph.members(), nested.inside)) fail("without all of what it is made of");
  }
  std::string name = candidate.name.empty() ? sub_graph.OperatorLabel(graph_) : candidate.name;
  return {std::move(name), std::move(sub_graph), &request_.toolchain};
}

const RuleKind kRegisteredKind{"Registered",
                               {"function", "options", "sub_rule"},
                               [](const JsonReader& json, std::string name) -> PartitionRulePtr {
                                 PartitionRulePtr sub_rule = json.Has("sub_rule") ? ReadSubRule(json) : nullptr;
                                 return std::make_unique<RegisteredPartitionRule>(RegisteredFunction::Read(json),
                                                                                  std::move(sub_rule), std::move(name));
                               }};

}  // namespace collage
