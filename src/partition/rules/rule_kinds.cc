// rule_kinds.cc: the kinds of rules, and what their JSON forms share.
#include "partition/rules/rule_kinds.h"

#include <fmt/format.h>

#include <array>
#include <climits>
#include <nlohmann/json.hpp>

#include "support/edit_distance.h"

namespace collage {
namespace {

const std::array kKinds{
    &kDFPatternKind,    &kOpPredicateKind,  &kOpCallByKindKind, &kFuseOpsKind,         &kHostKind,
    &kPatternTableKind, &kLibraryCallsKind, &kCompositeKind,    &kPrimitiveKind,       &kUnionKind,
    &kOnlyValidKind,    &kCombineKind,      &kMaxCoalesceKind,  &kVerticalAnchorsKind, &kHorizontalAnchorsKind,
    &kMaximalKind,      &kProposedKind,     &kTrimFreeEndsKind, &kRegisteredKind,
};

}  // namespace

PartitionRulePtr ReadRule(const JsonReader& json) {
  const JsonReader kind_name = json.At("rule");
  std::vector<std::string> names;
  for (const RuleKind* kind : kKinds) {
    names.emplace_back(kind->name);
    if (kind_name.String() != kind->name) continue;
    std::vector<std::string> fields{"rule", "name"};
    fields.insert(fields.end(), kind->fields.begin(), kind->fields.end());
    json.AllowOnly(fields);
    return kind->read(json, json.StringOr("name", ""));
  }
  const std::vector<std::string> near = NearMisses(kind_name.String(), names);
  kind_name.Fail(
      fmt::format("there is no rule '{}'", kind_name.String()),
      near.empty() ? fmt::format("rules are {}", fmt::join(names, ", ")) : "did you mean '" + near[0] + "'?");
}

PartitionRulePtr ReadSubRule(const JsonReader& json) { return ReadRule(json.At("sub_rule")); }

PartitionRulePtr ParseRule(const std::string& text, const std::string& file) {
  return ReadRule(JsonReader::Parse(text, file));
}

SubGraphConfig ReadSubGraphConfig(const JsonReader& json) {
  json.AllowOnly({"max_exits", "allow_taps", "max_depth"});
  return {.max_exits = json.IntOr("max_exits", 0, 0, INT_MAX),
          .max_depth = json.IntOr("max_depth", 0, 0, INT_MAX),
          .allow_taps = json.BoolOr("allow_taps", false)};
}

RuleJson ToJson(const SubGraphConfig& config) {
  return {{"max_exits", config.max_exits}, {"allow_taps", config.allow_taps}, {"max_depth", config.max_depth}};
}

RuleJson RuleHead(const char* kind, const std::string& name) {
  RuleJson json{{"rule", kind}};
  if (!name.empty()) json["name"] = name;
  return json;
}

std::string NestedName(const std::string& outer, const std::string& inner) {
  if (outer.empty() || inner.starts_with(outer)) return inner;
  return inner.empty() ? outer : outer + "." + inner;
}

}  // namespace collage
