// explanation_fields.h: explanations of graphs as JSON (support/json_fields.h).
#pragma once

#include "driver/explanation/cost_fields.h"
#include "driver/explanation/graph_explanation.h"
#include "support/json_fields.h"

namespace collage {

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedNode>
void VisitFields(Self& node, Visitor& visit) {
  visit.Field("kind", node.kind);
  visit.OptionalField("op", node.op);
  visit.OptionalField("name", node.name);
  visit.OptionalField("attrs", node.attrs);
  visit.OptionalField("type", node.types);
  visit.OptionalField("inputs", node.inputs);
  visit.OptionalField("bytes", node.bytes);
  visit.OptionalField("weights", node.weights);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedToolchain>
void VisitFields(Self& toolchain, Visitor& visit) {
  visit.Field("name", toolchain.name);
  visit.Field("toolchain", toolchain.registered);
  visit.Field("version", toolchain.version);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedSwitch>
void VisitFields(Self& one, Visitor& visit) {
  visit.Field("from", one.from);
  visit.Field("to", one.to);
  visit.Field("seconds", one.seconds);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedPenalties>
void VisitFields(Self& penalties, Visitor& visit) {
  visit.Field("transition_seconds", penalties.transition_seconds);
  visit.Field("switches", penalties.switches);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedConversion>
void VisitFields(Self& conversion, Visitor& visit) {
  visit.Field("node", conversion.node);
  visit.OptionalField("field", conversion.field);
  visit.Field("from", conversion.from);
  visit.Field("to", conversion.to);
  visit.Field("seconds", conversion.seconds);
  visit.OptionalField("at_least", conversion.at_least);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedCandidate>
void VisitFields(Self& candidate, Visitor& visit) {
  visit.Field("toolchain", candidate.toolchain);
  visit.Field("rule", candidate.rule);
  visit.Field("nodes", candidate.nodes);
  visit.Field("inputs", candidate.inputs);
  visit.Field("outputs", candidate.outputs);
  visit.OptionalField("cost", candidate.cost);
  visit.OptionalField("nested", candidate.nested);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedRounds>
void VisitFields(Self& rounds, Visitor& visit) {
  visit.OptionalField("first", rounds.first);
  visit.OptionalField("final", rounds.last);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedContender>
void VisitFields(Self& contender, Visitor& visit) {
  visit.Field("name", contender.name);
  visit.OptionalField("baselines", contender.baselines);
  visit.OptionalField("partitions", contender.partitions);
  visit.Field("rounds", contender.rounds);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedAlternative>
void VisitFields(Self& alternative, Visitor& visit) {
  visit.Field("scope", alternative.scope);
  visit.OptionalField("toolchain", alternative.toolchain);
  visit.Field("candidates", alternative.candidates);
  visit.Field("replaces", alternative.replaces);
  visit.Field("extra_seconds", alternative.extra_seconds);
  visit.OptionalField("low_seconds", alternative.low_seconds);
  visit.OptionalField("high_seconds", alternative.high_seconds);
  visit.Field("own_seconds", alternative.own_seconds);
  visit.Field("replaced_seconds", alternative.replaced_seconds);
  visit.Field("penalty_seconds", alternative.penalty_seconds);
  visit.Field("conversions", alternative.conversions);
  visit.Field("at_least", alternative.at_least);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedRefusal>
void VisitFields(Self& refusal, Visitor& visit) {
  visit.Field("toolchain", refusal.toolchain);
  visit.Field("reason", refusal.reason);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedPartition>
void VisitFields(Self& partition, Visitor& visit) {
  visit.Field("candidate", partition.candidate);
  visit.Field("operators", partition.operators);
  visit.OptionalField("first_node", partition.first_node);
  visit.Field("nodes", partition.nodes);
  visit.OptionalField("kernel", partition.kernel);
  visit.OptionalField("seconds", partition.seconds);
  visit.OptionalField("share", partition.share);
  visit.Field("transition_seconds", partition.transition_seconds);
  visit.Field("switch_seconds", partition.switch_seconds);
  visit.Field("conversion_seconds", partition.conversion_seconds);
  visit.Field("conversions", partition.conversions);
  visit.Field("alternatives", partition.alternatives);
  visit.Field("refused", partition.refused);
  visit.OptionalField("skipped", partition.is_skipped);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedGap>
void VisitFields(Self& gap, Visitor& visit) {
  visit.Field("toolchain", gap.toolchain);
  visit.Field("kind", gap.kind);
  visit.Field("reason", gap.reason);
  visit.Field("nodes", gap.nodes);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedCover>
void VisitFields(Self& cover, Visitor& visit) {
  visit.Field("name", cover.name);
  visit.Field("seconds", cover.seconds);
  visit.OptionalField("unknown", cover.unknown);
  visit.Field("partitions", cover.partitions);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedProgress>
void VisitFields(Self& progress, Visitor& visit) {
  visit.Field("seconds", progress.seconds);
  visit.Field("measured", progress.measured);
  visit.OptionalField("best_seconds", progress.best_seconds);
  visit.OptionalField("least_seconds", progress.least_seconds);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, GraphExplanation>
void VisitFields(Self& graph, Visitor& visit) {
  visit.Field("name", graph.name);
  visit.Field("hash", graph.hash);
  visit.Field("winner", graph.winner);
  visit.Field("nodes", graph.nodes);
  visit.Field("results", graph.results);
  visit.Field("toolchains", graph.toolchains);
  visit.Field("penalties", graph.penalties);
  visit.OptionalField("rates", graph.rates);
  visit.Field("conversions", graph.conversions);
  visit.Field("costs", graph.costs);
  visit.Field("candidates", graph.candidates);
  visit.Field("candidates_left_out", graph.candidates_left_out);
  visit.Field("contenders", graph.contenders);
  visit.Field("partitions", graph.partitions);
  visit.Field("best_mix", graph.best_mix);
  visit.OptionalField("no_alternatives", graph.no_alternatives);
  visit.Field("refusals", graph.gaps);
  visit.Field("covers", graph.covers);
  visit.Field("progress", graph.progress);
}

}  // namespace collage
