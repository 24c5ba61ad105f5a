// partition_rule.h: how candidate partitions are found (RFC 0.81, "PartitionRule"): base rules produce candidates from
// the dataflow graph, combinator rules make candidates from those of their sub-rules. Candidates may overlap.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collage/target/toolchain.h"
#include "dataflow/pattern.h"
#include "partition/sub_graph.h"

namespace collage {

struct PartitionSpec;  // partition_spec.h

/// A sub-graph that a toolchain may be able to run.
struct CandidatePartition {
  std::string rule_name;
  SubGraph sub_graph;
  const Toolchain* toolchain = nullptr;
  const PartitionSpec* spec = nullptr;  ///< the finder; null while rules combine it
};

/// Nodes that a rule matched, and why they are no candidate all the same.
struct Refusal {
  std::string rule_name;      ///< name of the pattern table's row, or the name that a candidate of operators would have
  const SubGraph* sub_graph;  ///< null: everything
  const Reason& reason;
};

/// Refusals while candidates are found, for explanations.
struct RuleLog {
  /// The operators of a refused match, joined by '+'.
  std::function<void(const std::string& label, const Reason& reason)> on_refusal;
  /// Reports the match itself, too, to count by node.
  std::function<void(const Refusal& refusal)> on_refused_match;
  /// A rule found more candidates than it may return: the largest ones are missing.
  bool candidates_capped = false;
};

/// A rule as JSON: {"rule": "Composite", "name": …, "sub_rule": …} (docs/inspection.md).
using RuleJson = nlohmann::ordered_json;

class PartitionRule {
 public:
  virtual ~PartitionRule() = default;
  /// Returns the rule as `ParseRule` reads it, without predicates of toolchains. Registered functions go by their
  /// names.
  virtual RuleJson ToJson() const = 0;
  /// In a fixed order; each set of nodes once per rule that makes sub-graphs.
  virtual std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, const Toolchain& toolchain,
                                                        RuleLog& log) const = 0;
};
using PartitionRulePtr = std::unique_ptr<PartitionRule>;

/// Reads a rule from JSON; throws kInput with file, line and column of what is wrong. The kinds of rules are listed in
/// rules/rule_kinds.cc.
PartitionRulePtr ParseRule(const std::string& text, const std::string& file = "rule");

/// Tells `log` that what a rule matched is no candidate. `sub_graph` is null when that is so of the whole graph.
void LogRefusal(const RuleLog& log, const DataflowGraph& graph, const std::string& rule_name, const SubGraph* sub_graph,
                const Reason& reason);

/// Names of candidates: an outer rule's name before an inner one's ("outer.inner", unless that begins with it already).
std::string NestedName(const std::string& outer, const std::string& inner);

// ---- base rules (rules/base_rules.cc) ----

/// Every match of a pattern, also those of which inner values are used elsewhere. With a predicate: those that can be a
/// function of one result which satisfies it.
PartitionRulePtr DFPatternRule(std::string name, DFPatternPtr pattern,
                               std::function<Result<void>(const Function&)> predicate);
/// Every operator call that the toolchain's predicate takes.
/// With `attribute`, "target.NAME": the predicate of toolchain NAME instead; none where there is no such toolchain.
PartitionRulePtr OpPredicateRule(std::string attribute = "", std::string name = "");
/// Every operator call that can be fused: of kind A or smaller.
PartitionRulePtr OpCallByKindRule(std::string name = "");
/// As many operators as pass FuseOps puts into one function, unless relay.FuseOps.max_depth says otherwise.
inline constexpr int kMaxFusedCalls = 256;
/// The functions of two to `max_calls` operators that pass FuseOps makes, if the toolchain's predicate takes them all.
PartitionRulePtr FuseOpsRule(int max_calls = kMaxFusedCalls, std::string name = "");
/// Every expression that needs no toolchain: variables, constants, operators, functions, tuples, projections, control
/// flow.
PartitionRulePtr HostRule(std::string name = "");
/// Every row of a toolchain's pattern table: Composite functions around matches. Throws kInput for an unknown
/// toolchain.
PartitionRulePtr PatternTableRule(const Toolchain& toolchain);

// ---- combinator rules (rules/wrap_rules.cc, rules/combine_rule.cc, rules/maximal_rule.cc) ----

/// Candidates become Composite functions called `name`.
PartitionRulePtr CompositeRule(std::string name, PartitionRulePtr sub_rule);
/// Candidates become Primitive functions, with the toolchain as Compiler unless it is native.
PartitionRulePtr PrimitiveRule(PartitionRulePtr sub_rule, std::string name = "");
PartitionRulePtr UnionRule(std::vector<PartitionRulePtr> sub_rules, std::string name = "");
/// Sub-candidates that are valid.
PartitionRulePtr OnlyValidRule(SubGraphConfig config, PartitionRulePtr sub_rule, std::string name = "");

/// Which two touching candidates may become one: the upstream one's kind and the downstream one's are at most these.
/// One of kind B whose operators give the shape of all that they read, constants aside, counts as of kind E, too.
struct CombinerKinds {
  OpPatternKind up;
  OpPatternKind down;
};
struct RegisteredFunction;  // rules/registered_rule.h

/// Combiners, and bounds on what they make.
struct CombineOptions {
  std::vector<CombinerKinds> kinds;  ///< AllSimple
  bool tuple_args = false;         ///< TupleArg: an injective call of a tuple, with injective makers of all its fields
  bool tuple_projections = false;  ///< TupleProj: a tuple's maker with projections from it
  bool constants = false;          ///< Constant: a candidate with all constants that it reads
  bool join_anything = false;      ///< any two that touch
  std::vector<std::shared_ptr<const RegisteredFunction>> registered;  ///< Registered: from outside of the tree
  bool through_tuples = false;  ///< join_anything: tuples and projections between two let them touch, and join them
  /// Two are joined only if the sum of their depths is at most this; 0 = no limit.
  int max_depth = 0;
  /// Combined candidates must be valid under `limits`; else only no path may leave and re-enter them.
  bool only_valid = true;
  SubGraphConfig limits;      ///< taps only count when `max_exits` is set
  size_t max_candidates = 0;  ///< 0: 20000, or four for each node if that is more; smaller ones are found first
  /// Ways of choosing makers for all fields of one tuple; concatenations of dozens of values have millions.
  size_t max_tuple_choices = 256;
};
/// All ways of combining sub-candidates, to any depth, each set of nodes once for each way to wrap it (Composites); the
/// sub-candidates too.
PartitionRulePtr CombineRule(CombineOptions options, PartitionRulePtr sub_rule, std::string name = "");

/// Disjoint candidates, those of one toolchain, spec and basic block merged where they touch, as far as `config` allows
/// and all can still be run one after the other (see coalesce.h). The rule takes its sub-candidates largest first,
/// without those that overlap what was taken.
std::vector<CandidatePartition> MaxCoalesce(const DataflowGraph& graph,
                                            const std::vector<CandidatePartition>& candidates,
                                            const SubGraphConfig& config);
PartitionRulePtr MaxCoalesceRule(SubGraphConfig config, PartitionRulePtr sub_rule, std::string name = "");

/// Which candidates are joined by their anchors.
struct AnchorOptions {
  std::string anchor;   ///< an operator; empty: all of kind A
  int max_anchors = 2;  ///< in one union
  size_t max_candidates = 20'000;
};
/// Sub-candidates, and unions of those with anchors where one feeds the other ("vertical fusion").
PartitionRulePtr VerticalAnchorsRule(AnchorOptions options, PartitionRulePtr sub_rule, std::string name = "");
/// Sub-candidates, and unions of those whose one anchor is a call of the same operator, with the same attributes, that
/// reads the same value, where none depends on another through anything else ("horizontal fusion"): several results.
PartitionRulePtr HorizontalAnchorsRule(AnchorOptions options, PartitionRulePtr sub_rule, std::string name = "");

/// Sub-candidates, and the largest regions that they cover together and that can be ordered: what graph compilers would
/// take. Regions obey no limits.
PartitionRulePtr MaximalRule(PartitionRulePtr sub_rule);
/// Sub-candidates, and the partitions that the toolchain's own partitioner makes of the whole graph, each set of nodes
/// once. Partitions that cannot be run whole are refused.
PartitionRulePtr ProposedRule(PartitionRulePtr sub_rule);
/// Sub-candidates without the reshapes, tuples and projections at which they begin or end, once as in CombineRule: the
/// host does these for nothing. Nor do they end by making numbers of 8-bit integers (qnn.dequantize) that they make,
/// where a candidate holds that with its reader: between the two there is a quarter of the bytes, and readers that
/// multiply integers need them.
PartitionRulePtr TrimFreeEndsRule(PartitionRulePtr sub_rule);

/// Phase 1: the rule by which a toolchain's candidates are found, from its pattern table, predicate, and fusion style.
/// Partitions are made Primitive only when they are chosen (rewrite.h), so that what is measured is the function
/// inside.
PartitionRulePtr GatherPartitionRule(const Toolchain& toolchain);

}  // namespace collage
