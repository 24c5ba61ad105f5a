// bind_inspect.cc: what a rule finds, what a search chooses at given costs (collage/inspect.h).
#include <nanobind/stl/function.h>

#include "bindings.h"
#include "casters.h"
#include "collage/inspect.h"
#include "collage/ir/infer_type.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

nb::dict ToDict(const PartitionReport& report) {
  nb::dict row;
  row["target"] = report.target;
  row["rule_name"] = report.rule_name;
  row["inside"] = report.inside;
  row["ops"] = report.ops;
  row["cost"] = report.cost;
  return row;
}

nb::dict ToDict(const CoverReport& report) {
  nb::list partitions;
  for (const PartitionReport& one : report.partitions) partitions.append(ToDict(one));
  nb::dict searched;
  searched["states"] = report.num_states;
  searched["candidates"] = report.num_candidates;
  searched["costs"] = report.num_costs;
  nb::dict result;
  result["cost"] = report.cost;
  result["next_best_cost"] = report.next_best_cost;
  result["partitions"] = partitions;
  result["host"] = report.host;
  result["searched"] = searched;
  result["function"] = report.rewritten;
  return result;
}

}  // namespace

void BindInspect(nb::module_& m) {
  m.def(
      "inspect_candidates",
      [](const Function& function, const std::string& rule) {
        InferType(function);
        nb::list rows;
        for (const CandidateReport& one : InspectCandidates(function, {rule, "rule"})) {
          nb::dict row;
          row["inside"] = one.inside;
          row["rule_name"] = one.rule_name;
          row["label"] = one.label;
          row["kind"] = std::string(1, one.kind);
          row["depth"] = one.depth;
          rows.append(row);
        }
        return rows;
      },
      "function"_a, "rule"_a, "See `collage.relay.collage.candidates`.");
  m.def(
      "rewrite_by_rule",
      [](const Function& function, const std::string& rule, const std::string& target) {
        InferType(function);
        const Function rewritten = RewriteByRule(function, {rule, "rule"}, ParseTargetName(target));
        InferType(rewritten);
        return rewritten;
      },
      "function"_a, "rule"_a, "target"_a, "See `collage.relay.collage.rewrite`.");
  m.def(
      "partition_by_costs",
      [](const Function& function, const std::string& targets, const std::string& costs,
         std::optional<std::function<double(const Function&, const std::string&)>> estimate) {
        InferType(function);
        CandidateCost cost;
        if (estimate) cost = *estimate;
        CoverReport report =
            PartitionByGivenCosts(function, {targets, "targets"}, {costs, "costs"}, /*rewrite=*/true, cost);
        InferType(report.rewritten);
        return ToDict(report);
      },
      "function"_a, "targets"_a, "costs"_a, "estimate"_a = nb::none(), "See `collage.relay.collage.partition`.");
  m.def(
      "inspect_dataflow",
      [](const Function& function) {
        nb::list rows;
        for (const DataflowNodeReport& one : InspectDataflow(function)) {
          nb::dict row;
          row["index"] = one.index;
          row["label"] = one.label;
          row["inputs"] = one.inputs;
          row["outputs"] = one.outputs;
          row["basic_block"] = one.basic_block;
          row["external"] = one.is_external;
          row["dominator_parent"] = one.dominator_parent;
          rows.append(row);
        }
        return rows;
      },
      "function"_a, "See `collage.relay.collage.dataflow`.");
}

}  // namespace collage::python
