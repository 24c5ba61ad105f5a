// json_documents.cc: an example or two of each kind, and the function that reads them.
#include "property/json_documents.h"

#include <sstream>

#include "collage/inspect.h"
#include "cost/database/tuning_json.h"
#include "dataflow/dataflow_graph.h"
#include "driver/covers/partitioning_json.h"
#include "support/file.h"
#include "support/json_reader.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

/// Exported records, of today's version and of version 1.
std::vector<JsonKind> RecordKinds() {
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

std::vector<JsonKind> Kinds() {
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

}  // namespace

std::vector<JsonKind> AllJsonKinds() {
  std::vector<JsonKind> kinds = Kinds();
  for (const JsonKind& kind : RecordKinds()) kinds.push_back(kind);
  return kinds;
}

}  // namespace collage
