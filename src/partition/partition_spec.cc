// partition_spec.cc: specs of targets, and which candidates fit planned devices.
#include "partition/partition_spec.h"

#include <fmt/format.h>

#include <map>

#include "target/toolchain_configuration.h"

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
    const ToolchainConfiguration configuration = ToolchainConfiguration::Of(target, registry);
    const Toolchain& registered = configuration.registered();
    const Target typed = Target::Parse(target.ToString(), registry);
    std::shared_ptr<const Toolchain> configured = registered.WithOptions(configuration.options());
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
