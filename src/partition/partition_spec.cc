// partition_spec.cc: specs of targets, and which candidates fit planned devices.
#include "partition/partition_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/place.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

class HostToolchain : public Toolchain {
 public:
  std::string name() const override { return kHostName; }
  std::string description() const override { return "what needs no toolchain"; }
  Availability Probe() const override { return {true, "", "", ""}; }
  int priority() const override { return 1'000'000; }
  bool is_native() const override { return true; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    return Reason{"the host compiles nothing", kHostName};
  }
};

bool FitsPlannedDevice(const VirtualDevice& planned, const Target& target) {
  if (planned.device_type != 0 && planned.device_type != target.device_type()) return false;
  if (planned.device_id > 0) return false;  // there is one device of a type
  if (planned.target.empty()) return true;
  const Target wanted = Target::Parse(planned.target);
  return wanted == target || target.Refines(wanted);
}

/// Says of a call why its planned device is none of the targets'.
void LogPlannedDevice(const RuleLog& log, const DataflowGraph& graph, const CandidatePartition& candidate,
                      const std::vector<Target>& targets) {
  for (const int index : candidate.sub_graph.members()) {
    const VirtualDevice& planned = graph.node(index).expr->virtual_device();
    const auto fits = [&](const Target& target) { return FitsPlannedDevice(planned, target); };
    if (graph.OpAt(index) == nullptr || std::ranges::any_of(targets, fits)) continue;
    const Reason reason{"it is planned for " + ToString(planned), "device"};
    LogRefusal(log, graph, candidate.rule_name, &candidate.sub_graph, reason);
    return;
  }
}

}  // namespace

PartitionSpec SpecOf(const Toolchain& toolchain, std::vector<Target> targets, const std::string& rule,
                     const std::string& origin) {
  if (!rule.empty()) return {toolchain.name(), std::move(targets), &toolchain, ParseRule(rule, origin)};
  PartitionRulePtr own = GatherPartitionRule(toolchain);
  if (!toolchain.is_native()) own = PrimitiveRule(std::move(own));
  return {toolchain.name(), std::move(targets), &toolchain, std::move(own)};
}

std::vector<PartitionSpec> GatherPartitionSpecs(const std::vector<Target>& targets, const ToolchainRegistry& registry) {
  std::vector<PartitionSpec> specs;
  std::vector<std::pair<ToolchainConfiguration, std::string>> known;  // by spec: and the rule
  std::map<std::string, int> times;
  for (const Target& target : targets) {
    const Target typed = Target::Parse(target.ToString(), registry);
    std::pair asked(ToolchainConfiguration::Of(target, registry), typed.partition_rule());
    const auto same = std::ranges::find(known, asked);
    if (same != known.end()) {
      specs[static_cast<size_t>(same - known.begin())].targets.push_back(typed);
      continue;
    }
    const ToolchainConfiguration& configuration = asked.first;
    std::shared_ptr<const Toolchain> configured = configuration.registered().WithOptions(configuration.options());
    const Toolchain& toolchain = configured == nullptr ? configuration.registered() : *configured;
    specs.push_back(SpecOf(toolchain, {typed}, asked.second, "partition_rule of '" + typed.kind() + "'"));
    specs.back().owned = std::move(configured);
    if (const int time = times[toolchain.name()]++; time > 0) specs.back().name += fmt::format("_{}", time);
    known.push_back(std::move(asked));
  }
  return specs;
}

PartitionSpec HostSpec() {
  auto host = std::make_shared<const HostToolchain>();
  const Toolchain* toolchain = host.get();
  return {kHostName, {}, toolchain, HostRule(), std::move(host)};
}

std::vector<CandidatePartition> PartitionSpec::AllCandidates(const DataflowGraph& graph, RuleLog& log) const {
  std::vector<CandidatePartition> candidates = rule->AllCandidates(graph, *toolchain, log);
  std::set<std::vector<int>> seen;
  std::erase_if(candidates, [&](const CandidatePartition& candidate) {
    const SubGraph& sub_graph = candidate.sub_graph;
    if (!FitsPlannedDevices(graph, sub_graph, targets)) {
      LogPlannedDevice(log, graph, candidate, targets);
      return true;
    }
    return !seen.insert(KeyOf(sub_graph)).second || !sub_graph.CheckRunnable(graph).ok();
  });
  for (CandidatePartition& candidate : candidates) candidate.spec = this;
  return candidates;
}

bool FitsPlannedDevices(const DataflowGraph& graph, const SubGraph& sub_graph, const std::vector<Target>& targets) {
  return targets.empty() || std::ranges::any_of(targets, [&](const Target& target) {
           return std::ranges::all_of(sub_graph.members(), [&](int index) {
             return FitsPlannedDevice(graph.node(index).expr->virtual_device(), target);
           });
         });
}

}  // namespace collage
