// why_facts.cc: other ways with their costs, and reasons.
#include "explain/why_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "report/units.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;

const std::string& ToolchainOf(const GraphExplanation& graph, const ExplainedCandidate& candidate) {
  return graph.toolchains[static_cast<size_t>(candidate.toolchain)].name;
}

std::string StateOf(const ExplainedCost* cost) {
  return cost == nullptr ? "unknown" : NamesOf(cost->state)[static_cast<size_t>(cost->state)];
}

/// A candidate of an alternative.
Fact CandidateRow(const GraphExplanation& graph, int number) {
  const ExplainedCandidate& candidate = graph.candidates[static_cast<size_t>(number)];
  const ExplainedCost* cost = CostOf(graph, candidate);
  return Fact::Record("", "",
                      {Fact::Text("toolchain", "toolchain", ToolchainOf(graph, candidate)),
                       Fact::Text("operators", "operators", OperatorsOf(graph, candidate)),
                       Fact::Seconds("seconds", "cost", cost == nullptr ? std::nullopt : cost->seconds),
                       Fact::Seconds("half_width_seconds", "±", cost == nullptr ? std::nullopt : cost->half_width),
                       Fact::Text("state", "state", StateOf(cost)),
                       Fact::Count("samples", "samples", cost == nullptr ? 0 : cost->samples),
                       Fact::Text("inputs", "inputs", FormatsText(candidate.inputs)),
                       Fact::Text("outputs", "outputs", FormatsText(candidate.outputs)),
                       Fact::Text("rule", "rule", candidate.rule)})
      .Says("{toolchain} {operators:60}[ {seconds}]{?half_width_seconds}{?state}{?samples}{?inputs}{?outputs}{?rule}");
}

Fact ConversionRow(const ExplainedConversion& one) {
  return Fact::Record("", "",
                      {Fact::Integer("node", "node", one.node), Fact::Text("from", "from", one.from),
                       Fact::Text("to", "to", one.to), Fact::Seconds("seconds", "time", one.seconds),
                       Fact::Flag("at_least", "at least", one.at_least)})
      .Says("{from} to {to} {seconds}{?node}");
}

/// By which share its own costs would have to fall for it to win; nothing where that is no matter of its costs.
std::optional<double> NeededShare(const ExplainedAlternative& one) {
  if (one.extra_seconds <= 0 || one.own_seconds <= 0 || one.extra_seconds >= one.own_seconds) return std::nullopt;
  return one.extra_seconds / one.own_seconds;
}

std::string NeededText(const ExplainedAlternative& one) {
  if (one.extra_seconds < 0) return one.at_least ? "may win: not measured" : "wins by costs";
  if (one.extra_seconds == 0) return "costs the same";
  const std::optional<double> share = NeededShare(one);
  return share ? fmt::format("if {:.1f} % faster", 100 * *share) : "not even if its kernels took no time";
}

std::string IntervalText(const ExplainedAlternative& one) {
  if (!one.low_seconds) return "";
  if (!one.high_seconds) return "at least " + FormatDifference(*one.low_seconds);
  return FormatDifference(*one.low_seconds) + " to " + FormatDifference(*one.high_seconds);
}

Fact AlternativeRow(const GraphExplanation& graph, const ExplainedAlternative& one) {
  std::vector<Fact> candidates, conversions;
  for (const int number : one.candidates) candidates.push_back(CandidateRow(graph, number));
  for (const ExplainedConversion& conversion : one.conversions) conversions.push_back(ConversionRow(conversion));
  return Fact::Record(
      "", "",
      {Fact::Text("way", "way", WayOf(graph, one)),
       Fact::Text("scope", "scope", NamesOf(one.scope)[static_cast<size_t>(one.scope)]),
       Fact::Integers("replaces", "replaces", one.replaces), Fact::Seconds("own_seconds", "cost", one.own_seconds),
       Fact::Seconds("replaced_seconds", "cost of what it replaces", one.replaced_seconds),
       Fact::Number("penalty_seconds", "penalties", one.penalty_seconds, Unit::kDifference),
       Fact::Number("extra_seconds", "more in all", one.extra_seconds, Unit::kDifference),
       Fact::Number("low_seconds", "low", one.low_seconds, Unit::kDifference),
       Fact::Number("high_seconds", "high", one.high_seconds, Unit::kDifference),
       Fact::Flag("at_least", "at least", one.at_least), Fact::Text("interval", "interval", IntervalText(one)),
       Fact::Number("needed_share", "needed", NeededShare(one), Unit::kShare),
       Fact::Text("needed", "to win", NeededText(one)),
       Fact::Table("partitions", "made of", std::move(candidates)).Inline().SeparatedBy(" + "),
       Fact::Table("conversions", "conversions", std::move(conversions)).Inline().SeparatedBy(", ")});
}

Fact AlternativesTable(const GraphExplanation& graph, const ExplainedPartition& partition) {
  std::vector<Fact> rows;
  for (const ExplainedAlternative& one : partition.alternatives) rows.push_back(AlternativeRow(graph, one));
  return Fact::Table("alternatives", "other ways", std::move(rows))
      .Columns({{"other way", "{way}{?scope}{?replaces}{?low_seconds}{?high_seconds}{?needed_share}"},
                {"cost", "[{own_seconds}]"},
                {"instead of", "[{replaced_seconds}]"},
                {"penalties", "[{penalty_seconds}]"},
                {"in all", "[{?at_least}>= ]{extra_seconds}"},
                {"95 % interval", "[{interval}]"},
                {"would win", "{needed}"},
                {"made of", "[{partitions}][ · converting {conversions}]"}});
}

Fact CostLine(const ExplainedCost* cost) {
  if (cost == nullptr) return Fact::Line("cost", {Fact::Text("state", "state", "unknown")}).Says("{state}");
  return Fact::Line("cost",
                    {Fact::Text("state", "state", StateOf(cost)), Fact::Seconds("p10_seconds", "p10", cost->p10),
                     Fact::Seconds("p50_seconds", "p50", cost->p50), Fact::Seconds("p90_seconds", "p90", cost->p90),
                     Fact::Seconds("half_width_seconds", "±", cost->half_width),
                     Fact::Count("samples", "samples", cost->samples),
                     Fact::Seconds("least_seconds", "no kernel takes less than", cost->least_seconds),
                     Fact::Text("schedule", "schedule", cost->schedule)})
      .Says(
          "{state}[: p50 {p50_seconds}][ ± {half_width_seconds}][, p10 {p10_seconds}][, p90 {p90_seconds}][, {samples} "
          "samples][ · no kernel here takes less than {least_seconds}][ · schedule {schedule}]");
}

/// Schedules that were tried, the fastest first.
Fact TrialsTable(const ExplainedCost* cost) {
  std::vector<ExplainedTrial> trials = cost == nullptr ? std::vector<ExplainedTrial>() : cost->trials;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::ranges::stable_sort(trials, {}, [=](const ExplainedTrial& one) { return one.seconds.value_or(kNever); });
  std::vector<Fact> rows;
  for (const ExplainedTrial& one : trials) {
    rows.push_back(
        Fact::Record("", "",
                     {Fact::Text("schedule", "schedule", one.schedule), Fact::Seconds("seconds", "p50", one.seconds),
                      Fact::Text("reason", "reason", one.reason)}));
  }
  return Fact::Table("trials", "schedules", std::move(rows))
      .Columns({{"schedule that was tried", "{schedule}"}, {"p50", "[{seconds}][{reason:80}]"}});
}

std::string WhyNoAlternatives(const GraphExplanation& graph, const ExplainedPartition& partition) {
  return partition.is_skipped ? "not looked for: those of more expensive partitions took the time there is"
                              : graph.no_alternatives;
}

Fact RefusedTable(const GraphExplanation& graph, const ExplainedPartition& partition) {
  std::vector<Fact> rows;
  for (const ExplainedRefusal& one : partition.refused) {
    const std::string& name = graph.toolchains[static_cast<size_t>(one.toolchain)].name;
    rows.push_back(
        Fact::Record("", "", {Fact::Text("toolchain", "toolchain", name), Fact::Text("reason", "reason", one.reason)})
            .Says("{toolchain}: {reason:200}"));
  }
  return Fact::Table("refused", "not by", std::move(rows));
}

}  // namespace

Fact WhyRecord(const Explanation& explanation, const PartitionPlace& place) {
  const GraphExplanation& graph = explanation.graphs[place.graph];
  const ExplainedPartition& partition = graph.partitions[place.partition];
  const ExplainedCandidate& candidate = CandidateOf(graph, partition);
  const auto count = static_cast<int64_t>(graph.partitions.size());
  const bool is_program = explanation.graphs.size() > 1;
  const std::string region = is_program ? fmt::format(" in region {}", place.graph) : "";
  return Fact::Record(
             "", "",
             {Fact::Integer("partition", "partition", static_cast<int64_t>(place.partition)),
              Fact::Integer("region", "region",
                            is_program ? std::optional(static_cast<int64_t>(place.graph)) : std::nullopt),
              Fact::Count("of", "partitions", count), Fact::Text("operators", "operators", partition.operators),
              Fact::Text("toolchain", "toolchain", ToolchainOf(graph, candidate)),
              Fact::Seconds("seconds", "cost", partition.seconds),
              Fact::Number("share", "share", partition.share, Unit::kShare), CostLine(CostOf(graph, candidate)),
              Fact::Line("beside", {Fact::Seconds("transition_seconds", "transition", partition.transition_seconds),
                                    Fact::Seconds("switch_seconds", "toolchain switch", partition.switch_seconds),
                                    Fact::Seconds("conversion_seconds", "conversions", partition.conversion_seconds)}),
              Fact::Text("rule", "rule", candidate.rule),
              Fact::Line("formats", {Fact::Texts("inputs", "inputs", candidate.inputs).SeparatedBy(", "),
                                     Fact::Texts("outputs", "outputs", candidate.outputs).SeparatedBy(", ")})
                  .Says("{inputs} -> {outputs}"),
              Fact::Texts("nodes", "nodes", NamesOf(graph, partition.nodes)).SeparatedBy(" "),
              AlternativesTable(graph, partition), RefusedTable(graph, partition),
              TrialsTable(CostOf(graph, candidate)),
              Fact::Line("no others", {Fact::Text("no_alternatives", "", WhyNoAlternatives(graph, partition))})
                  .Says("{no_alternatives}")})
      .Says("partition {partition} of {of}" + region +
            ": {operators:100} by {toolchain}[, {seconds}][ ({share})]{?region}");
}

namespace {

std::string ReasonOf(const ExplainedAlternative& one) {
  if (one.at_least) {
    return fmt::format("not measured: it takes at least {}, by a lower bound", FormatDifference(one.extra_seconds));
  }
  const char* how = one.extra_seconds > 0 ? "slower:" : one.extra_seconds < 0 ? "faster by costs:" : "costs the same:";
  return fmt::format("{} {} ({})", how, FormatDifference(one.extra_seconds), IntervalText(one));
}

/// A partition of the winner, and why `toolchain` does not compute it.
Fact WhyNotRow(const Explanation& explanation, const PartitionPlace& place, const std::vector<int>& configurations) {
  const GraphExplanation& graph = explanation.graphs[place.graph];
  const ExplainedPartition& partition = graph.partitions[place.partition];
  const ExplainedCandidate& chosen = CandidateOf(graph, partition);
  const auto is_one = [&](int toolchain) {
    return std::ranges::find(configurations, toolchain) != configurations.end();
  };
  std::vector<std::string> reasons;
  std::optional<double> extra;
  if (is_one(chosen.toolchain)) reasons.emplace_back("it does");
  for (const ExplainedAlternative& one : partition.alternatives) {
    if (!one.toolchain || !is_one(*one.toolchain) || one.scope != ExplainedAlternative::Scope::kSame) continue;
    if (!extra || (!one.at_least && one.extra_seconds < *extra)) extra = one.extra_seconds;
    reasons.push_back(ReasonOf(one));
  }
  for (const ExplainedRefusal& one : partition.refused) {
    if (is_one(one.toolchain)) reasons.push_back(one.reason);
  }
  if (reasons.empty()) {
    const std::string none = WhyNoAlternatives(graph, partition);
    reasons.push_back(none.empty() ? "it has no candidate for these nodes" : none);
  }
  return Fact::Record("", "",
                      {Fact::Integer("partition", "partition", static_cast<int64_t>(place.partition)),
                       Fact::Integer("region", "region",
                                     explanation.graphs.size() > 1 ? std::optional(static_cast<int64_t>(place.graph))
                                                                   : std::nullopt),
                       Fact::Text("toolchain", "toolchain", ToolchainOf(graph, chosen)),
                       Fact::Text("operators", "operators", partition.operators),
                       Fact::Text("first_node", "first node", partition.first_node),
                       Fact::Number("extra_seconds", "more", extra, Unit::kDifference),
                       Fact::Texts("reasons", "reasons", reasons).SeparatedBy("; ")})
      .Says("");
}

Fact GapRow(const GraphExplanation& graph, const ExplainedGap& gap) {
  const std::vector<std::string> names = NamesOf(graph, gap.nodes);
  std::set<std::string> operators;
  for (const int node : gap.nodes) operators.insert(graph.nodes[static_cast<size_t>(node)].op);
  return Fact::Record("", "",
                      {Fact::Count("nodes", "nodes", static_cast<int64_t>(gap.nodes.size())),
                       Fact::Text("kind", "kind", gap.kind), Fact::Text("reason", "reason", gap.reason),
                       Fact::Texts("operators", "operators", {operators.begin(), operators.end()}).SeparatedBy(", "),
                       Fact::Text("first_node", "first node", names.empty() ? "" : names[0])});
}

/// Why a toolchain took no part, by the report; empty if it did.
std::string WhyAbsent(const Explanation& explanation, const std::string& toolchain) {
  for (const Json& one : explanation.report.value("toolchains", Json::array())) {
    if (one.value("name", "") != toolchain) continue;
    if (!one.value("available", false))
      return fmt::format("it was not available: {}", one.value("reason", "no reason is known"));
    if (!one.value("takes_part", true))
      return "it was not chosen: `--toolchains` or `--target` names others, or it is no default";
  }
  return "";
}

std::vector<PartitionPlace> AllPlaces(const Explanation& explanation) {
  std::vector<PartitionPlace> places;
  for (size_t g = 0; g < explanation.graphs.size(); ++g) {
    for (size_t p = 0; p < explanation.graphs[g].partitions.size(); ++p) places.push_back({g, p});
  }
  return places;
}

}  // namespace

std::string WayOf(const GraphExplanation& graph, const ExplainedAlternative& alternative) {
  std::map<std::string, int> counts;
  for (const int number : alternative.candidates) {
    ++counts[ToolchainOf(graph, graph.candidates[static_cast<size_t>(number)])];
  }
  std::vector<std::string> names;
  for (const auto& [name, _] : counts) names.push_back(name);
  std::string text = fmt::format("{}", fmt::join(names, " and "));
  if (alternative.candidates.size() > 1) text += fmt::format(" in {} partitions", alternative.candidates.size());
  if (alternative.scope == ExplainedAlternative::Scope::kWider) {
    text += fmt::format(", for {} of the mix", alternative.replaces.size());
  }
  return text;
}

Fact WhyFacts(const Explanation& explanation, const std::vector<PartitionPlace>& places) {
  std::vector<Fact> rows;
  for (const PartitionPlace& place : places) rows.push_back(WhyRecord(explanation, place));
  return Fact::Report(kSchema, {Fact::Table("partitions", "", std::move(rows))});
}

Fact WhyNotFacts(const Explanation& explanation, const std::string& toolchain,
                 const std::vector<PartitionPlace>& places) {
  CheckToolchain(explanation, toolchain);
  const std::string absent = WhyAbsent(explanation, toolchain);
  std::vector<Fact> rows, gaps;
  const std::vector<PartitionPlace> all = places.empty() ? AllPlaces(explanation) : places;
  if (absent.empty()) {
    for (const PartitionPlace& place : all) {
      const std::vector<int> configurations = ConfigurationsOf(explanation.graphs[place.graph], toolchain);
      rows.push_back(WhyNotRow(explanation, place, configurations));
    }
    for (const GraphExplanation& graph : explanation.graphs) {
      for (const ExplainedGap& gap : graph.gaps) {
        const std::vector<int> configurations = ConfigurationsOf(graph, toolchain);
        if (places.empty() && std::ranges::find(configurations, gap.toolchain) != configurations.end()) {
          gaps.push_back(GapRow(graph, gap));
        }
      }
    }
  }
  return Fact::Report(
      kSchema, {Fact::Line("", {Fact::Text("toolchain", "", toolchain), Fact::Text("absent", "took no part", absent)})
                    .Says("[{toolchain} took no part: {absent}]{?toolchain}"),
                Fact::Table("partitions", "partitions", std::move(rows))
                    .Columns({{"partition", "[{region}.]{partition}"},
                              {"chosen", "{toolchain}"},
                              {"operators", "{operators:48}"},
                              {"first node", "[{first_node:32}]"},
                              {toolchain, "{reasons:200}{?extra_seconds}"}}),
                Fact::Table("not_computed", "nodes it cannot compute at all", std::move(gaps))
                    .Columns({{"nodes", "{nodes}"},
                              {"operators", "{operators:60}"},
                              {"first", "{first_node:32}"},
                              {"why", "{kind}: {reason:160}"}})});
}

}  // namespace collage
