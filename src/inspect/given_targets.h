// given_targets.h: targets of which nothing is known but a name, a side and a rule; and registered ones, as text.
#pragma once

#include <utility>
#include <vector>

#include "collage/inspect.h"
#include "partition/partition_spec.h"
#include "support/json_reader.h"

namespace collage {

/// Stands for the toolchain of a target that is but a name: takes everything, cannot compile anything.
class GivenToolchain : public Toolchain {
 public:
  explicit GivenToolchain(TargetName target) : target_(std::move(target)) {}

  std::string name() const override { return target_.name; }
  std::string description() const override { return "given by name"; }
  Availability Probe() const override { return {true, "", "", ""}; }
  int priority() const override { return 0; }
  bool is_native() const override { return !target_.is_external; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    return Reason{"a target for inspection", target_.name};
  }

 private:
  TargetName target_;
};

/// [{"name", "external", "rule"}, {"name", "target"}, "cuda -compiler=acme", …] as specs: names are distinct, none is
/// "host". "target" is text or a list of it: targets that share a rule. Specs of registered toolchains have targets,
/// the others have none.
std::vector<PartitionSpec> ReadTargets(const JsonText& json);

}  // namespace collage
