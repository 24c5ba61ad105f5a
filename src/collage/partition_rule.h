// partition_rule.h: how candidate partitions are found (RFC 0.81, "PartitionRule"): base rules produce candidates from the
// dataflow graph, combinator rules make candidates from those of their sub-rules. Candidates may overlap.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collage/sub_graph.h"
#include "collage/target/toolchain.h"
#include "dataflow/pattern.h"

namespace collage {

/// A sub-graph that a toolchain may be able to run.
struct CandidatePartition {
  std::string rule_name;
  SubGraph sub_graph;
  const Toolchain* toolchain = nullptr;
};

/// What was refused while candidates were found, for explanations: reason → how often and first place.
struct RuleLog {
  std::function<void(const std::string& label, const Reason& reason)> on_refusal;
  bool candidates_capped = false;
};

class PartitionRule {
 public:
  virtual ~PartitionRule() = default;
  virtual std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain,
                                                        RuleLog& log) const = 0;
};
using PartitionRulePtr = std::unique_ptr<PartitionRule>;

/// Every match of a pattern whose extracted function satisfies the predicate.
PartitionRulePtr DFPatternRule(std::string name, DFPatternPtr pattern,
                               std::function<Result<void>(const Function&)> predicate);
/// Every operator call that the toolchain's predicate takes.
PartitionRulePtr OpPredicateRule();
/// Every operator call that can be fused: of kind A or smaller.
PartitionRulePtr OpCallByKindRule();
/// Candidates become Composite functions named after the rule.
PartitionRulePtr CompositeRule(std::string name, PartitionRulePtr sub_rule);
PartitionRulePtr UnionRule(std::vector<PartitionRulePtr> sub_rules);

/// Which two touching candidates may become one: the upstream one's kind and the downstream one's are at most these.
struct CombinerKinds {
  OpPatternKind up;
  OpPatternKind down;
};
struct CombineOptions {
  std::vector<CombinerKinds> kinds;
  bool take_tuples = false;      ///< tuples and projections in between go inside
  SubGraphConfig limits;
  size_t max_candidates = 20'000;
};
/// All ways of combining touching candidates, grown one sub-candidate at a time, each set once; the sub-candidates too.
PartitionRulePtr CombineRule(CombineOptions options, PartitionRulePtr sub_rule);
/// Sub-candidates that are valid.
PartitionRulePtr OnlyValidRule(SubGraphConfig config, PartitionRulePtr sub_rule);
/// Sub-candidates, and the largest convex regions that they cover together.
PartitionRulePtr MaximalRule(PartitionRulePtr sub_rule);

/// Phase 1: the rule by which a toolchain's candidates are found, from its pattern table, predicate, and fusion style.
PartitionRulePtr GatherPartitionRule(const Toolchain& toolchain);

}  // namespace collage
