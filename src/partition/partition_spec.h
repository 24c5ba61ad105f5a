// partition_spec.h: phase 1 of RFC 0.81: from targets to the rules by which their candidates are found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/target/target.h"
#include "partition/partition_rule.h"

namespace collage {

/// A rule, and for which target. Candidates refer to `toolchain`, which lives in the registry; or here: the host's, and
/// those that a target gives options.
struct PartitionSpec {
  std::string name;    ///< the toolchain's name; a number follows the name of a second one
  std::string target;  ///< as text; empty for the host
  const Toolchain* toolchain = nullptr;
  PartitionRulePtr rule;
  std::shared_ptr<const Toolchain> owned;  ///< null when the registry's

  /// Returns the rule's candidates, without those that the nodes' planned devices exclude from the target.
  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, RuleLog& log) const;
};

/// One spec for each target, then the host's. By a target's option `partition_rule` if it has one; else, with
/// `compiler`, by that toolchain's pattern table or, where it has none, its operator predicate; else as FuseOps would,
/// all ways, with Composite functions for library calls left outside of Primitive ones. External candidates are wrapped
/// in Primitive functions with a Compiler. Throws kInput for a toolchain that is not registered, and for options that
/// it does not have.
std::vector<PartitionSpec> GatherPartitionSpecs(const std::vector<Target>& targets, const ToolchainRegistry& registry);

/// Whether every node inside may run on `target`: it is planned for no device, or for one of that type whose target is
/// `target` or is refined by it.
bool FitsPlannedDevices(const DataflowGraph& graph, const SubGraph& sub_graph, const Target& target);

}  // namespace collage
