// inspect_facts.cc: what the inspection commands report, as facts.
#include "report/inspect_facts.h"

namespace collage {
namespace {

Fact NodeRow(const DataflowNodeReport& node) {
  return Fact::Record(
             "", "",
             {Fact::Integer("i", "node", node.index), Fact::Text("label", "label", node.label),
              Fact::Integers("inputs", "inputs", node.inputs), Fact::Integers("outputs", "outputs", node.outputs),
              Fact::Integer("basic_block", "basic block", node.basic_block).OrNone(),
              Fact::Flag("external", "external", node.is_external),
              Fact::Integer("dominator_parent", "dominator", node.dominator_parent).OrNone()})
      .Says(node.is_external ? "external" : "{dominator_parent}");
}

Fact CandidateRow(const CandidateReport& candidate) {
  return Fact::Record(
      "", "",
      {Fact::Integers("inside", "inside", candidate.inside), Fact::Text("rule_name", "rule", candidate.rule_name),
       Fact::Text("label", "label", candidate.label), Fact::Text("kind", "kind", std::string(1, candidate.kind)),
       Fact::Integer("depth", "depth", candidate.depth)});
}

Fact PartitionRow(const PartitionReport& partition) {
  return Fact::Record(
      "", "",
      {Fact::Text("target", "target", partition.target), Fact::Text("rule_name", "rule", partition.rule_name),
       Fact::Integers("inside", "inside", partition.inside),
       Fact::Texts("ops", "operators", partition.ops).SeparatedBy(" "), Fact::Number("cost", "cost", partition.cost)});
}

}  // namespace

Fact DataflowFacts(const std::vector<DataflowNodeReport>& nodes) {
  return Fact::Report(1, {Fact::Count("size", "nodes", static_cast<int64_t>(nodes.size())).Detail(),
                          TableOf("nodes", "nodes", nodes, NodeRow)
                              .Columns({{"node", "{i}"},
                                        {"label", "{label}"},
                                        {"inputs", "{inputs}"},
                                        {"outputs", "{outputs}"},
                                        {"basic block", "{basic_block}"},
                                        {"dominator", "{}{?external}{?dominator_parent}"}})});
}

Fact SubGraphFacts(const SubGraphReport& report) {
  const auto line = [](const char* label, const char* cell, Fact fact) {
    return Fact::Line(std::string("  ") + label, {std::move(fact)}).Says(cell);
  };
  return Fact::Report(1, {line("entry", "{entry}", Fact::Integers("entry", "entry", report.entry)),
                          line("exit", "{exit}", Fact::Integers("exit", "exit", report.exit)),
                          line("input", "{input}", Fact::Integers("input", "input", report.input)),
                          line("output", "{output}", Fact::Integers("output", "output", report.output)),
                          line("depth", "{depth}", Fact::Integer("depth", "depth", report.depth)),
                          line("kind", "{kind}", Fact::Text("kind", "kind", std::string(1, report.kind))),
                          line("label", "{label}", Fact::Text("label", "label", report.label)),
                          Fact::Line("  valid", {Fact::Flag("valid", "valid", report.is_valid),
                                                 Fact::Text("why_invalid", "why not", report.why_invalid)})
                              .Says("{valid}[: {why_invalid}]")});
}

Fact CandidatesFacts(const std::vector<CandidateReport>& candidates) {
  return Fact::Report(1, {TableOf("candidates", "candidates", candidates, CandidateRow)
                              .Columns({{"inside", "{inside}"},
                                        {"rule", "{rule_name}"},
                                        {"label", "{label}"},
                                        {"kind", "{kind}"},
                                        {"depth", "{depth}"}}),
                          Fact::Line("", {}).Says(std::to_string(candidates.size()) + " candidates")});
}

Fact CoverFacts(const CoverReport& cover, const std::string& module) {
  const std::string next_best = cover.next_best_cost ? "{next_best_cost}" : "none";
  std::vector<Fact> facts{Fact::Number("cost", "cost", cover.cost),
                          Fact::Number("next_best_cost", "next best cost", cover.next_best_cost),
                          TableOf("partitions", "partitions", cover.partitions, PartitionRow)
                              .Columns({{"target", "{target}"},
                                        {"cost", "{cost}"},
                                        {"operators", "{ops}"},
                                        {"inside", "{inside}"},
                                        {"rule", "{rule_name}"}}),
                          Fact::Integers("host", "host", cover.host),
                          Fact::Line("", {}).Says("cost {cost}, next best " + next_best + "; " +
                                                  std::to_string(cover.host.size()) + " nodes left to the host"),
                          Fact::Record("searched", "",
                                       {Fact::Count("states", "states", cover.num_states),
                                        Fact::Count("candidates", "candidates", cover.num_candidates),
                                        Fact::Count("costs", "costs", cover.num_costs)})
                              .Says("searched: {states} states, {candidates} candidates, {costs} costs"),
                          Fact::Record("certificate", "",
                                       {Fact::Flag("exact", "exact", cover.is_exact),
                                        Fact::Count("dropped", "states dropped", cover.num_dropped),
                                        Fact::Number("least_cost", "least cost of any", cover.least_cost)})
                              .Says("no cover of these candidates costs less than {least_cost}[{?exact}][{?dropped}]")};
  for (Fact& fact : facts) fact.is_detail = !module.empty() || fact.kind <= Fact::Kind::kMap;
  if (!module.empty()) facts.push_back(Fact::Text("module", "module", module));
  return Fact::Report(1, std::move(facts)).Says(module.empty() ? "" : "{module}");
}

}  // namespace collage
