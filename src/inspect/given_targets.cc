// given_targets.cc: reading targets.
#include "inspect/given_targets.h"

#include <fmt/format.h>

#include <memory>
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
  std::vector<PartitionSpec> Read(const JsonText& json) {
    for (const JsonReader& target : JsonReader::Parse(json.text, json.file).Items()) {
      if (target.IsString()) {
        AddRegistered({target}, "");
      } else if (target.Has("target")) {
        target.AllowOnly({"name", "target"});
        const JsonReader text = target.At("target");
        const std::string name = target.Has("name") ? NewName(target.At("name")) : "";
        const std::vector<JsonReader> texts = text.IsString() ? std::vector<JsonReader>{text} : text.Items();
        if (texts.empty()) text.Fail("there is no target in this list");
        AddRegistered(texts, name);
      } else {
        target.AllowOnly({"name", "external", "rule"});
        const std::string name = NewName(target.At("name"));
        auto owned = std::make_shared<const GivenToolchain>(TargetName{name, target.BoolOr("external", false)});
        const Toolchain* toolchain = owned.get();
        specs_.push_back({name, {}, toolchain, ReadRule(target.At("rule")), std::move(owned)});
      }
    }
    return std::move(specs_);
  }

 private:
  std::string NewName(const JsonReader& json) {
    const std::string name = json.String();
    if (name.empty() || name == kHostName) json.Fail("'host' is the host's own name; give another one");
    if (!names_.insert(name).second) json.Fail(fmt::format("target '{}' is given twice", name));
    return name;
  }

  /// Named after its toolchain unless it has a name; the second one of a toolchain has "_1" behind it.
  void AddRegistered(const std::vector<JsonReader>& texts, const std::string& name) {
    std::vector<Target> targets;
    std::vector<PartitionSpec> specs;
    for (const JsonReader& json : texts) {
      try {
        targets.push_back(Target::Parse(json.String()));
        specs = GatherPartitionSpecs(targets, ToolchainRegistry::Global());
      } catch (const Error& error) {
        // The rule within a target's text has places of its own.
        json.Fail(error.where().empty() ? error.message() : error.where() + ": " + error.message(), error.hint());
      }
      if (specs.size() > 1) json.Fail("targets that share a rule configure one toolchain in one way");
    }
    for (PartitionSpec& spec : specs) {
      spec.name = name.empty() ? FreshName(spec.name) : name;
      specs_.push_back(std::move(spec));
    }
  }

  std::string FreshName(const std::string& wanted) {
    std::string name = wanted;
    for (int time = 1; !names_.insert(name).second; ++time) name = fmt::format("{}_{}", wanted, time);
    return name;
  }

  std::vector<PartitionSpec> specs_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<PartitionSpec> ReadTargets(const JsonText& json) { return TargetsReader().Read(json); }

}  // namespace collage
