// json_inputs_test.cc: JSON that people write (rules, costs, targets, limits, partitionings, tuning records), changed
// at random: it is read, or refused with an error that says whose mistake it is. Nothing else is thrown, nothing
// crashes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/inspect.h"
#include "collage/support/error.h"
#include "cost/database/tuning_json.h"
#include "dataflow/dataflow_graph.h"
#include "driver/covers/partitioning_json.h"
#include "partition/partition_rule.h"
#include "property/random_source.h"
#include "support/file.h"
#include "support/json_reader.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

/// How many documents there are: $COLLAGE_JSON_DOCUMENTS, else some.
int NumDocuments() {
  const char* text = std::getenv("COLLAGE_JSON_DOCUMENTS");
  constexpr int kSome = 1500;
  return text == nullptr ? kSome : std::atoi(text);
}

/// Values that no reader expects. `1e999` and the like are put into the text, since JSON values cannot hold them.
const std::vector<std::string> kOddValues{"null",
                                          "true",
                                          "-1",
                                          "0",
                                          "0.5",
                                          "1e999",
                                          "-1E400",
                                          "1e-999",
                                          "9223372036854775807",
                                          "18446744073709551616",
                                          "99999999999999999999999",
                                          "-9223372036854775809",
                                          "2147483648",
                                          "1e300",
                                          "\"\"",
                                          "\"*\"",
                                          "\"NaN\"",
                                          "\"inf\"",
                                          "\"\\u0000\"",
                                          "\"\\ud800\"",
                                          "\"é\\u202e\"",
                                          "[]",
                                          "{}",
                                          "[[]]",
                                          "[null]",
                                          "[-1]",
                                          "[1e999]",
                                          "{\"\": null}",
                                          "[0, 0, 0]",
                                          "\"native\"",
                                          "\"dnnl:external\""};

/// Positions of values in a JSON document, by walking it.
void Collect(Json& at, std::vector<Json*>& all) {
  all.push_back(&at);
  if (!at.is_structured()) return;
  for (Json& child : at) Collect(child, all);
}

/// `seed` with a few changes: values replaced, fields dropped, renamed, doubled, lists repeated; at times the text cut
/// or a character of it changed.
std::string Changed(const Json& seed, RandomSource& random) {
  Json json = seed;
  std::vector<std::pair<std::string, std::string>> later;
  for (int changes = 1 + random.Below(3); changes > 0; --changes) {
    std::vector<Json*> all;
    Collect(json, all);
    Json& place = *all[static_cast<size_t>(random.Below(static_cast<int>(all.size())))];
    switch (random.Below(5)) {
      case 0:
        if (place.is_object() && !place.empty()) {
          auto field = place.begin();
          std::advance(field, random.Below(static_cast<int>(place.size())));
          place.erase(field);
          break;
        }
        [[fallthrough]];
      case 1:
        if (place.is_object()) {
          place[random.Pick<std::string>({"", "name", "rule", "cost", "inside", "*", "pattern", "\xc3\xa9"})] =
              Json::parse(R"([{"rule": "Host"}, 1])");
          break;
        }
        [[fallthrough]];
      case 2:
        if (place.is_array() && !place.empty()) {
          place.push_back(place[static_cast<size_t>(random.Below(static_cast<int>(place.size())))]);
          break;
        }
        [[fallthrough]];
      default: {
        const std::string mark = fmt::format("odd value {}", later.size());
        later.emplace_back("\"" + mark + "\"", random.Pick(kOddValues));
        place = mark;
      }
    }
  }
  std::string text = json.dump();
  for (const auto& [mark, value] : later) {
    if (const size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), value);
  }
  if (random.OneIn(12)) text.resize(static_cast<size_t>(random.Below(static_cast<int>(text.size()) + 1)));
  if (!text.empty() && random.OneIn(12)) {
    text[static_cast<size_t>(random.Below(static_cast<int>(text.size())))] = static_cast<char>(random.Below(256));
  }
  if (random.OneIn(40)) text = std::string(static_cast<size_t>(random.Below(3000)), random.OneIn(2) ? '[' : '{') + text;
  return text;
}

/// A kind of document: examples, and what reads it.
struct Kind {
  const char* name;
  std::vector<Json> seeds;
  std::function<void(const std::string& text)> read;
};

/// Exported records, of today's version and of version 1.
std::vector<Kind> RecordKinds() {
  const Json old_record = Json::parse(R"json({"workload": "w", "layouts": "p:p", "toolchain": "native",
      "version": "1/m5.0 by rows=3", "machine": "m", "threads": 1, "ok": true, "label": "add",
      "measured_at": "2026-01-01 00:00:00", "min_seconds": 1, "p50_seconds": 1, "p90_seconds": 1, "samples": 5,
      "max_error": 0, "schedule": ""})json");
  const Json record = Json::parse(R"json({"key": {"kind": "partition", "workload": "w", "layouts": "p:p",
      "toolchain": "native", "version": "1", "method": "m5.0", "machine": "m", "threads": 1, "schedule": "rows=3"},
      "ok": true, "minimum": 1, "p50": 1, "p90": 1, "num_samples": 5, "max_error": 0, "reason": "", "label": "add",
      "measured_at": "2026-01-01 00:00:00", "schedule": ""})json");
  const Json header = Json::parse(R"json({"format": "collage-tuning", "version": 2})json");
  const Json old_header = Json::parse(R"json({"format": "collage-tuning", "version": 1})json");
  static const TemporaryFolder folder;
  static TuningDatabase database((folder / "tuning.db").string());
  return {
      {"records",
       {record},
       [=](const std::string& text) {
         std::istringstream in(header.dump() + "\n" + text + "\n");
         ImportRecords(database, in, "x.jsonl");
       }},
      {"records of version 1",
       {old_record},
       [=](const std::string& text) {
         std::istringstream in(old_header.dump() + "\n" + text + "\n");
         ImportRecords(database, in, "x.jsonl");
       }},
      {"header of records",
       {header},
       [=](const std::string& text) {
         std::istringstream in(text + "\n" + record.dump() + "\n");
         ImportRecords(database, in, "x.jsonl");
       }},
  };
}

std::vector<Kind> Kinds() {
  static const Function function = testing_graphs::GptTail();
  static const Function three = testing_graphs::Std();
  const Json rule = Json::parse(R"json({"rule": "Union", "sub_rules": [
      {"rule": "Composite", "name": "dense", "sub_rule": {"rule": "DFPattern", "pattern": "add(nn.dense(*, const), const)"}},
      {"rule": "OpCallByKind"}, {"rule": "Host"}]})json");
  const Json combining =
      Json::parse(R"json({"rule": "OnlyValid", "config": {"max_exits": 1, "allow_taps": false, "max_depth": 4},
      "sub_rule": {"rule": "Combine", "sub_rule": {"rule": "OpCallByKind"}, "max_depth": 4, "combiner_rules":
      [{"combiner": "AllSimple", "kinds": ["A->B", "E->E"]}, {"combiner": "TupleArg"}, {"combiner": "Constant"}]}})json");
  const Json one =
      Json::parse(R"json({"rule": "Primitive", "sub_rule": {"rule": "DFPattern", "pattern": "abs(*)"}})json");
  const Json merged =
      Json::parse(R"json({"rule": "MaxCoalesce", "sub_rule": {"rule": "VerticalAnchors", "anchor": "nn.relu",
      "max_anchors": 2, "sub_rule": {"rule": "OpCallByKind"}}})json");
  const Json targets = Json::parse(R"json([{"name": "a", "external": true, "rule": {"rule": "OpCallByKind"}},
      {"name": "b", "external": false, "rule": {"rule": "OpCallByKind"}}, {"name": "mine", "target": "llvm"}])json");
  const Json costs = Json::parse(R"json({"op_cost": {"a": {"nn.relu": 1.5, "*": 2}}, "fusion_benefit": 0.9,
      "transition_penalty": 0.25, "unsupported": {"a": ["abs"]}, "coalesce": true,
      "overrides": [{"target": "a", "inside": [3], "cost": 7}]})json");
  const Json plain_costs = Json::parse(R"json({"fusion_benefit": 0.5, "conversion": 0})json");
  const Json limits = Json::parse(R"json({"max_exits": 1, "allow_taps": true, "max_depth": 3})json");
  const Json partitioning = Json::parse(R"json({"format": "collage-partitioning", "version": 1,
      "graph": {"nodes": 7, "hash": ""}, "partitions": [{"toolchain": "native", "inside": [3, 4, 5],
      "operators": "abs+nn.relu+nn.relu", "rule": "", "inputs": ["plain"], "outputs": ["plain"], "seconds": 1e-6,
      "nested": [{"inside": [3], "attrs": {"Composite": "x", "n": 1}}], "schedule": ""}]})json");
  const auto as_text = [](const std::string& text) { return JsonText{text, "x.json"}; };
  return {
      {"rule", {rule, combining, merged}, [=](const std::string& text) { InspectCandidates(function, as_text(text)); }},
      {"rewriting",
       {one, merged},
       [=](const std::string& text) {
         RewriteByRule(three, as_text(text), {"acme", true});
       }},
      {"costs",
       {costs, plain_costs},
       [=](const std::string& text) { PartitionByGivenCosts(three, as_text(targets.dump()), as_text(text)); }},
      {"targets",
       {targets},
       [=](const std::string& text) { PartitionByGivenCosts(three, as_text(text), as_text(costs.dump())); }},
      {"limits",
       {limits},
       [=](const std::string& text) {
         InspectSubGraph(three, {3, 4}, as_text(text));
       }},
      {"partitioning",
       {partitioning},
       [](const std::string& text) {
         const DataflowGraph graph(three);
         PartitioningFromJson(text, "x.json", graph, std::vector<bool>(graph.size(), false),
                              ToolchainRegistry::Global().All());
       }},
  };
}

std::vector<Kind> AllKinds() {
  std::vector<Kind> kinds = Kinds();
  for (const Kind& kind : RecordKinds()) kinds.push_back(kind);
  return kinds;
}

TEST(JsonInputs, AreReadOrRefused) {
  ProbeToolchains();
  const std::vector<Kind> kinds = AllKinds();
  std::map<std::string, int> read;
  for (int document = 0; document < NumDocuments(); ++document) {
    RandomSource random(static_cast<uint64_t>(document));
    const Kind& kind = random.Pick(kinds);
    const std::string text = Changed(random.Pick(kind.seeds), random);
    const std::string about = fmt::format("document {} ({}):\n{}", document, kind.name, text);
    try {
      kind.read(text);
      ++read[kind.name];
    } catch (const Error& error) {
      EXPECT_NE(ToString(error.category()), ToString(ErrorCategory::kInternal)) << error.Format() << "\n" << about;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << about;
    }
    if (HasFailure()) break;
  }
}

TEST(JsonInputs, TheDocumentsThatAreChangedAreRead) {
  ProbeToolchains();
  for (const Kind& kind : AllKinds()) {
    for (const Json& seed : kind.seeds) EXPECT_NO_THROW(kind.read(seed.dump())) << kind.name << ": " << seed.dump();
  }
}

}  // namespace
}  // namespace collage
