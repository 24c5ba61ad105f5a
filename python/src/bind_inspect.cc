// bind_inspect.cc: what a rule finds, what a search chooses at given costs (collage/inspect.h).
#include <nanobind/stl/function.h>

#include "bindings.h"
#include "casters.h"
#include "collage/inspect.h"
#include "collage/ir/infer_type.h"
#include "facts.h"
#include "report/inspect_facts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
void BindInspect(nb::module_& m) {
  m.def(
      "inspect_candidates",
      [](const Function& function, const std::string& rule) {
        InferType(function);
        const Fact report = CandidatesFacts(InspectCandidates(function, {rule, "rule"}));
        return nb::cast<nb::list>(ToPython(*report.Find("candidates")));
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
        nb::dict result = nb::cast<nb::dict>(ToPython(CoverFacts(report)));
        result["function"] = report.rewritten;
        return result;
      },
      "function"_a, "targets"_a, "costs"_a, "estimate"_a = nb::none(), "See `collage.relay.collage.partition`.");
  m.def(
      "inspect_dataflow",
      [](const Function& function) {
        return nb::cast<nb::list>(ToPython(*DataflowFacts(InspectDataflow(function)).Find("nodes")));
      },
      "function"_a, "See `collage.relay.collage.dataflow`.");
}

}  // namespace collage::python
