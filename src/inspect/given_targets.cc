// given_targets.cc: reading targets.
#include "inspect/given_targets.h"

#include <fmt/format.h>

#include <set>

#include "partition/rules/rule_kinds.h"

namespace collage {

TargetName ParseTargetName(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name.empty() || (colon != std::string::npos && text.substr(colon) != ":external")) {
    throw Error(ErrorCategory::kInput, fmt::format("malformed spec '{}'", text), "", "write NAME or NAME:external");
  }
  return {name, colon != std::string::npos};
}

namespace {

class TargetsReader {
 public:
  std::vector<GivenTarget> Read(const JsonText& json) {
    for (const JsonReader& target : JsonReader::Parse(json.text, json.file).Items()) {
      if (target.IsString()) {
        AddText(target, "");
      } else if (target.Has("target")) {
        target.AllowOnly({"name", "target"});
        AddText(target.At("target"), target.Has("name") ? NewName(target.At("name")) : "");
      } else {
        target.AllowOnly({"name", "external", "rule"});
        const std::string name = NewName(target.At("name"));
        Add({name, target.BoolOr("external", false)}, ReadRule(target.At("rule")), nullptr);
      }
    }
    Add({"host", false}, HostRule(), nullptr);
    return std::move(targets_);
  }

 private:
  std::string NewName(const JsonReader& json) {
    const std::string name = json.String();
    if (name.empty() || name == "host") json.Fail("'host' is the host's own name; give another one");
    if (!names_.insert(name).second) json.Fail(fmt::format("target '{}' is given twice", name));
    return name;
  }

  /// Named after its toolchain unless it has a name; the second one of a toolchain has "_1" behind it.
  void AddText(const JsonReader& json, std::string name) {
    std::shared_ptr<PartitionSpec> spec;
    try {
      const Target target = Target::Parse(json.String());
      spec = std::make_shared<PartitionSpec>(std::move(GatherPartitionSpecs({target}, ToolchainRegistry::Global())[0]));
    } catch (const Error& error) {
      // The rule within a target's text has places of its own.
      json.Fail(error.where().empty() ? error.message() : error.where() + ": " + error.message(), error.hint());
    }
    for (int time = 0; name.empty(); ++time) {
      const std::string wanted = time == 0 ? spec->name : fmt::format("{}_{}", spec->name, time);
      if (names_.insert(wanted).second) name = wanted;
    }
    PartitionRulePtr rule = std::move(spec->rule);
    Add({std::move(name), !spec->toolchain->is_native()}, std::move(rule), spec);
  }

  void Add(TargetName name, PartitionRulePtr rule, const std::shared_ptr<const PartitionSpec>& spec) {
    const int priority = static_cast<int>(targets_.size());
    targets_.push_back({std::make_unique<GivenToolchain>(std::move(name), priority, spec), std::move(rule), spec});
  }

  std::vector<GivenTarget> targets_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<CandidatePartition> GivenTarget::AllCandidates(const DataflowGraph& graph, RuleLog& log) const {
  std::vector<CandidatePartition> candidates = rule->AllCandidates(graph, *toolchain, log);
  if (spec == nullptr) return candidates;
  const Target target = Target::Parse(spec->target);
  std::erase_if(candidates, [&](const CandidatePartition& candidate) {
    return !FitsPlannedDevices(graph, candidate.sub_graph, target);
  });
  return candidates;
}

std::vector<GivenTarget> ReadTargets(const JsonText& json) { return TargetsReader().Read(json); }

}  // namespace collage
