// partition_spec.h: phase 1 of RFC 0.81: from targets to the rules by which their candidates are found, and phase 2 for
// one of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/target/target.h"
#include "partition/partition_rule.h"

namespace collage {

/// The name of the host's spec.
inline constexpr const char* kHostName = "host";

/// A rule, the toolchain that compiles its candidates, and the targets that these may run on. Candidates refer to the
/// spec that they are of, and to `toolchain`, which lives elsewhere: in a registry, say.
struct PartitionSpec {
  std::string name;             ///< the toolchain's; in GatherPartitionSpecs, a number follows the name of a second one
  std::vector<Target> targets;  ///< none: any
  const Toolchain* toolchain = nullptr;
  PartitionRulePtr rule;
  std::shared_ptr<const Toolchain> owned = nullptr;  ///< `toolchain`, where it lives here

  bool is_host() const { return name == kHostName; }
  /// Returns the rule's candidates, each set of nodes once for each way to wrap it: those that can be run in one go and
  /// whose nodes are planned for a device of one of the targets, or for none. They refer to this spec.
  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, RuleLog& log) const;
};

/// The spec of `toolchain`, by the rule that is `rule` as JSON, or by its own where that is empty
/// (GatherPartitionRule). `origin` is where the rule is from, for errors. Throws kInput for text that is no rule.
PartitionSpec SpecOf(const Toolchain& toolchain, std::vector<Target> targets = {}, const std::string& rule = "",
                     const std::string& origin = "");

/// The specs of targets, in their order; targets that configure the same toolchain in the same way and have the same
/// rule share one. Candidates are found by a target's option `partition_rule`; else, with `compiler`, by that
/// toolchain's pattern table or, where it has none, its operator predicate; else as FuseOps would, all ways. External
/// candidates are wrapped in Primitive functions with a Compiler. Throws kInput for a toolchain that is not registered,
/// and for options that it does not have.
std::vector<PartitionSpec> GatherPartitionSpecs(const std::vector<Target>& targets, const ToolchainRegistry& registry);

/// The host's spec: nodes that need no toolchain, one by one (HostRule).
PartitionSpec HostSpec();

/// Whether every node inside may run on one of `targets`: it is planned for no device, or for one of that type whose
/// target is that one or is refined by it. Without targets, always.
bool FitsPlannedDevices(const DataflowGraph& graph, const SubGraph& sub_graph, const std::vector<Target>& targets);

}  // namespace collage
