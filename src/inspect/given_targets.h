// given_targets.h: targets of which nothing is known but a name, a side and a rule; and registered ones, as text.
#pragma once

#include <memory>
#include <vector>

#include "collage/inspect.h"
#include "partition/partition_rule.h"
#include "partition/partition_spec.h"
#include "support/json_reader.h"

namespace collage {

/// Stands for a target's toolchain: takes what that takes, cannot compile anything.
class GivenToolchain : public Toolchain {
 public:
  GivenToolchain(TargetName target, int priority, std::shared_ptr<const PartitionSpec> spec = nullptr)
      : target_(std::move(target)), priority_(priority), spec_(std::move(spec)) {}

  /// Several targets may be of one toolchain.
  const std::string& target_name() const { return target_.name; }
  std::string name() const override { return spec_ == nullptr ? target_.name : spec_->toolchain->name(); }
  std::string description() const override { return "given by name"; }
  Availability Probe() const override { return {true, "", "", ""}; }
  int priority() const override { return priority_; }
  bool is_native() const override { return !target_.is_external; }
  std::vector<Incompatibility> Incompatible() const override {
    return spec_ == nullptr ? std::vector<Incompatibility>() : spec_->toolchain->Incompatible();
  }
  Result<void> SupportsCall(const CallNode& call) const override {
    return spec_ == nullptr ? Toolchain::SupportsCall(call) : spec_->toolchain->SupportsCall(call);
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    return Reason{"a target for inspection", target_.name};
  }

 private:
  TargetName target_;
  int priority_;
  std::shared_ptr<const PartitionSpec> spec_;
};

/// A target and how its candidates are found.
struct GivenTarget {
  std::unique_ptr<GivenToolchain> toolchain;
  PartitionRulePtr rule;
  std::shared_ptr<const PartitionSpec> spec;  ///< null when the rule was given

  /// Returns the rule's candidates, without those that planned devices exclude from the target.
  std::vector<CandidatePartition> AllCandidates(const DataflowGraph& graph, RuleLog& log) const;
};

/// The name of the target that a candidate is of.
inline const std::string& TargetOf(const CandidatePartition& candidate) {
  return static_cast<const GivenToolchain*>(candidate.toolchain)->target_name();
}

/// [{"name", "external", "rule"}, {"name", "target"}, "cuda -compiler=acme", …]: names are distinct, none is "host".
/// The host is added as the last one.
std::vector<GivenTarget> ReadTargets(const JsonText& json);

}  // namespace collage
