// partition_spec.cc: specs of targets, and which candidates fit planned devices.
#include "collage/partition_spec.h"

#include <fmt/format.h>

#include <map>

#include "support/edit_distance.h"

namespace collage {
namespace {

class HostToolchain : public Toolchain {
 public:
  std::string name() const override { return "host"; }
  std::string description() const override { return "what needs no toolchain"; }
  Availability Probe() const override { return {true, "", "", ""}; }
  int priority() const override { return 1'000'000; }
  bool is_native() const override { return true; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    return Reason{"the host compiles nothing", "host"};
  }
};

const Toolchain& ToolchainOf(const Target& target, const ToolchainRegistry& registry) {
  if (target.compiler().empty()) {
    const Toolchain* native = registry.Native();
    if (native != nullptr) return *native;
    throw Error(ErrorCategory::kUnavailable, fmt::format("no native toolchain for target '{}'", target.ToString()));
  }
  if (const Toolchain* toolchain = registry.Find(target.compiler())) return *toolchain;
  std::vector<std::string> names;
  for (const Toolchain* toolchain : registry.All()) names.push_back(toolchain->name());
  const std::vector<std::string> near = NearMisses(target.compiler(), names);
  throw Error(ErrorCategory::kInput,
              fmt::format("there is no toolchain '{}' for target '{}'", target.compiler(), target.ToString()), "",
              near.empty() ? "`collage targets` lists them" : "did you mean '" + near[0] + "'?");
}

PartitionRulePtr RuleOf(const Target& target, const Toolchain& toolchain) {
  if (!target.partition_rule().empty()) {
    return ParseRule(target.partition_rule(), "partition_rule of '" + target.kind() + "'");
  }
  PartitionRulePtr rule = GatherPartitionRule(toolchain);
  return toolchain.is_native() ? std::move(rule) : PrimitiveRule(std::move(rule));
}

}  // namespace

std::vector<PartitionSpec> GatherPartitionSpecs(const std::vector<Target>& targets, const ToolchainRegistry& registry) {
  std::vector<PartitionSpec> specs;
  std::map<std::string, int> times;
  for (const Target& target : targets) {
    const Toolchain& registered = ToolchainOf(target, registry);
    const Target typed = Target::Parse(target.ToString(), registry);
    std::shared_ptr<const Toolchain> configured = registered.WithOptions(typed.OptionsFor(registered));
    const Toolchain& toolchain = configured == nullptr ? registered : *configured;
    const int time = times[toolchain.name()]++;
    specs.push_back({time == 0 ? toolchain.name() : fmt::format("{}_{}", toolchain.name(), time), typed.ToString(),
                     &toolchain, RuleOf(typed, toolchain), std::move(configured)});
  }
  auto host = std::make_shared<const HostToolchain>();
  const Toolchain* host_toolchain = host.get();
  specs.push_back({"host", "", host_toolchain, HostRule(), std::move(host)});
  return specs;
}

std::vector<CandidatePartition> PartitionSpec::AllCandidates(const DataflowGraph& graph, RuleLog& log) const {
  std::vector<CandidatePartition> candidates = rule->AllCandidates(graph, *toolchain, log);
  if (target.empty()) return candidates;
  const Target parsed = Target::Parse(target);
  std::erase_if(candidates, [&](const CandidatePartition& candidate) {
    return !FitsPlannedDevices(graph, candidate.sub_graph, parsed);
  });
  return candidates;
}

bool FitsPlannedDevices(const DataflowGraph& graph, const SubGraph& sub_graph, const Target& target) {
  for (int index : sub_graph.members()) {
    const VirtualDevice& planned = graph.node(index).expr->virtual_device();
    if (planned.device_type != 0 && planned.device_type != target.device_type()) return false;
    if (planned.target.empty()) continue;
    const Target wanted = Target::Parse(planned.target);
    if (!(wanted == target) && !target.Refines(wanted)) return false;
  }
  return true;
}

}  // namespace collage
