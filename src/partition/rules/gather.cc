// gather.cc: phase 1 of RFC 0.81: from what a toolchain says of itself to the rule that finds its candidates.
#include "collage/ir/visitor.h"
#include "collage/target/composite_calls.h"
#include "collage/target/fusion_patterns.h"
#include "partition/rules/library_calls_rule.h"

namespace collage {
namespace {

/// Whether the predicate takes every call in `function`; otherwise why not the first that it does not take.
Result<void> TakesAll(const Toolchain& toolchain, const Function& function) {
  Result<void> answer;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr && answer.ok()) answer = toolchain.SupportsCall(*call);
  });
  return answer;
}

PartitionRulePtr BaseRule(const Toolchain& toolchain) {
  if (!toolchain.PatternTable().empty()) return PatternTableRule(toolchain);
  if (toolchain.fusion_style() != FusionStyle::kTVMFusion) return OpPredicateRule();
  std::vector<PartitionRulePtr> rules;
  // First, so that they are preferred where costs are equal or unknown.
  for (const Toolchain* library : CalledLibrariesOf(toolchain)) rules.push_back(LibraryCallsRule(*library));
  rules.push_back(OpPredicateRule());
  for (const std::string& pattern : FusionPatternsOf(toolchain)) {
    rules.push_back(DFPatternRule("", ParsePattern(pattern),
                                  [&toolchain](const Function& function) { return TakesAll(toolchain, function); }));
  }
  return UnionRule(std::move(rules));
}

std::vector<PartitionRulePtr> TwoRules(PartitionRulePtr first, PartitionRulePtr second) {
  std::vector<PartitionRulePtr> rules;
  rules.push_back(std::move(first));
  rules.push_back(std::move(second));
  return rules;
}

}  // namespace

PartitionRulePtr GatherPartitionRule(const Toolchain& toolchain) {
  using Kind = OpPatternKind;
  PartitionRulePtr rule = BaseRule(toolchain);
  CombineOptions options{.limits = {.max_exits = 1, .max_depth = toolchain.max_depth()}};
  switch (toolchain.fusion_style()) {
    case FusionStyle::kNoFusion: return OnlyValidRule({.max_exits = 1}, std::move(rule));
    case FusionStyle::kTVMFusion:
      options.kinds = {{Kind::kOutEWiseFusable, Kind::kBroadcast},
                       {Kind::kBroadcast, Kind::kCommReduce},
                       {Kind::kInjective, Kind::kInjective}};
      break;
    case FusionStyle::kArbitrary: options.join_anything = options.through_tuples = true; break;
  }
  rule = CombineRule(std::move(options), std::move(rule));
  if (toolchain.fusion_style() == FusionStyle::kTVMFusion) rule = UnionRule(TwoRules(std::move(rule), FuseOpsRule()));
  if (toolchain.proposes()) rule = ProposedRule(std::move(rule));
  if (toolchain.wants_maximal()) rule = MaximalRule(std::move(rule));
  return TrimFreeEndsRule(std::move(rule));
}

}  // namespace collage
