// rule_kinds.h: what is needed to add a kind of rule: its row, defined beside the rule, and its line in rule_kinds.cc.
#pragma once

#include <string>
#include <vector>

#include "partition/partition_rule.h"
#include "support/json_reader.h"

namespace collage {

/// How one kind of rule is read from JSON.
struct RuleKind {
  const char* name;                 ///< value of the field "rule"
  std::vector<std::string> fields;  ///< beside "rule" and "name"
  PartitionRulePtr (*read)(const JsonReader& json, std::string name);
};

/// Rules are read recursively, as deep as their text nests (limited by JsonReader).
PartitionRulePtr ReadRule(const JsonReader& json);
/// The rule in field "sub_rule".
PartitionRulePtr ReadSubRule(const JsonReader& json);

/// {"max_exits", "allow_taps", "max_depth"}; 0 = no limit.
SubGraphConfig ReadSubGraphConfig(const JsonReader& json);
RuleJson ToJson(const SubGraphConfig& config);

/// The matches of `entry`, each as its Composite, where they have one exit.
PartitionRulePtr RowRule(const PatternTableEntry& entry);

/// {"rule": kind}, with the name unless it is empty.
RuleJson RuleHead(const char* kind, const std::string& name);

// Beside the rules themselves.
extern const RuleKind kDFPatternKind, kOpPredicateKind, kOpCallByKindKind, kFuseOpsKind, kHostKind, kPatternTableKind,
    kLibraryCallsKind;
extern const RuleKind kCompositeKind, kPrimitiveKind, kUnionKind, kOnlyValidKind, kTrimFreeEndsKind;
extern const RuleKind kCombineKind, kMaximalKind, kProposedKind, kMaxCoalesceKind, kVerticalAnchorsKind,
    kHorizontalAnchorsKind, kRegisteredKind;

}  // namespace collage
