// bind_inspect.cc: what a rule finds, what a search chooses at given costs (collage/inspect.h).
#include <nanobind/stl/function.h>

#include "bindings.h"
#include "casters.h"
#include "collage/inspect.h"
#include "collage/ir/infer_type.h"
#include "collage/partition_rules.h"
#include "facts.h"
#include "report/inspect_facts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

/// A function of Python that is kept in collage.relay.collage by its name, and asked there: what is registered here
/// lives as long as the process, longer than Python's objects may.
nb::object Kept(const std::string& name) {
  return nb::module_::import_("collage.relay.collage").attr("_registered").attr("__getitem__")(name);
}

void RegisterRule(const std::string& name) {
  RegisterPartitionRules({{{name,
                            [name](const RuleRequest& request) {
                              nb::gil_scoped_acquire gil;
                              nb::list candidates;
                              for (const RuleCandidate& one : request.candidates) {
                                candidates.append(nb::make_tuple(one.inside, one.name));
                              }
                              const nb::object found = Kept(name)(request.function, request.toolchain.name(),
                                                                  request.options, candidates, request.first_new);
                              std::vector<RuleCandidate> result;
                              for (nb::handle row : found) {
                                result.push_back({nb::cast<std::vector<Expr>>(row[0]), nb::cast<std::string>(row[1]),
                                                  nb::cast<std::vector<size_t>>(row[2])});
                              }
                              return result;
                            }}},
                          {}});
}

void RegisterPredicate(const std::string& name) {
  RegisterPartitionRules({{}, {{name, [name](const Function& match) -> Result<void> {
                                  nb::gil_scoped_acquire gil;
                                  const nb::object answer = Kept(name)(match);
                                  std::string reason = answer.is_none() ? "" : nb::cast<std::string>(answer);
                                  if (reason.empty()) return {};
                                  return Reason{std::move(reason), name};
                                }}}});
}

}  // namespace

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
  m.def("register_rule", &RegisterRule, "name"_a, "See `collage.relay.collage.register_rule`.");
  m.def("register_predicate", &RegisterPredicate, "name"_a, "See `collage.relay.collage.register_predicate`.");
}

}  // namespace collage::python
