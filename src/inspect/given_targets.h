// given_targets.h: targets of which nothing is known but a name, a side and a rule.
#pragma once

#include <memory>
#include <vector>

#include "collage/inspect.h"
#include "collage/partition_rule.h"
#include "support/json_reader.h"

namespace collage {

/// Cannot compile anything.
class GivenToolchain : public Toolchain {
 public:
  GivenToolchain(TargetName target, int priority) : target_(std::move(target)), priority_(priority) {}

  std::string name() const override { return target_.name; }
  std::string description() const override { return "given by name"; }
  Availability Probe() const override { return {true, "", "", ""}; }
  int priority() const override { return priority_; }
  bool is_native() const override { return !target_.is_external; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    return Reason{"a target for inspection", target_.name};
  }

 private:
  TargetName target_;
  int priority_;
};

/// A target and how its candidates are found.
struct GivenTarget {
  std::unique_ptr<GivenToolchain> toolchain;
  PartitionRulePtr rule;
};

/// [{"name", "external", "rule"}, …]: names are distinct, none is "host". The host is added as the last one.
std::vector<GivenTarget> ReadTargets(const JsonText& json);

}  // namespace collage
