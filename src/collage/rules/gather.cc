// gather.cc: phase 1 of RFC 0.81: from what a toolchain says of itself to the rule that finds its candidates.
#include "collage/partition_rule.h"

namespace collage {
namespace {

PartitionRulePtr BaseRule(const Toolchain& toolchain) {
  return toolchain.PatternTable().empty() ? OpPredicateRule() : PatternTableRule(toolchain);
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
  if (toolchain.proposes()) rule = ProposedRule(std::move(rule));
  if (toolchain.wants_maximal()) rule = MaximalRule(std::move(rule));
  return TrimFreeEndsRule(std::move(rule));
}

}  // namespace collage
