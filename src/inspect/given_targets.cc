// given_targets.cc: reading targets.
#include "inspect/given_targets.h"

#include <fmt/format.h>

#include <set>

#include "collage/rules/rule_kinds.h"

namespace collage {

TargetName ParseTargetName(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name.empty() || (colon != std::string::npos && text.substr(colon) != ":external")) {
    throw Error(ErrorCategory::kInput, fmt::format("malformed spec '{}'", text), "", "write NAME or NAME:external");
  }
  return {name, colon != std::string::npos};
}

std::vector<GivenTarget> ReadTargets(const JsonText& json) {
  std::vector<GivenTarget> targets;
  std::set<std::string> names;
  const auto add = [&](TargetName name, PartitionRulePtr rule) {
    const int priority = static_cast<int>(targets.size());
    targets.push_back({std::make_unique<GivenToolchain>(std::move(name), priority), std::move(rule)});
  };
  for (const JsonReader& target : JsonReader::Parse(json.text, json.file).Items()) {
    target.AllowOnly({"name", "external", "rule"});
    const JsonReader name = target.At("name");
    if (name.String().empty() || name.String() == "host") name.Fail("'host' is the host's own name; give another one");
    if (!names.insert(name.String()).second) name.Fail(fmt::format("target '{}' is given twice", name.String()));
    add({name.String(), target.BoolOr("external", false)}, ReadRule(target.At("rule")));
  }
  add({"host", false}, HostRule());
  return targets;
}

}  // namespace collage
