// pack_facts.cc: tables of models, and what is left.
#include "report/pack_facts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "report/units.h"

namespace collage {
namespace {

Fact PackedRow(const PackedModelReport& one) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "model", one.name), Fact::Count("candidates", "candidates", one.num_candidates),
       Fact::Count("conversions", "conversions", one.num_conversions)});
}

Fact PackedPlayOffRow(const PackedPlayOffReport& one) {
  return Fact::Record(
      "", "", {Fact::Text("model", "model", one.model), Fact::Count("contenders", "contenders", one.num_contenders)});
}

Fact ContenderRow(const Contender& one) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "contender", one.name), Fact::Number("p50_seconds", "median", one.p50, Unit::kSeconds),
       Fact::Text("failure", "failure", one.failure)});
}

Fact PlayedRow(const MeasuredPlayOffReport& one) {
  const auto is_winner = [&](const Contender& contender) { return contender.name == one.winner; };
  const auto winner = std::ranges::find_if(one.contenders, is_winner);
  const auto has_failed = [](const Contender& contender) { return !contender.failure.empty(); };
  const auto seconds = winner == one.contenders.end() ? std::nullopt : std::optional(winner->p50);
  return Fact::Record(
      "", "",
      {Fact::Text("model", "model", one.model), Fact::Text("winner", "winner", one.winner),
       Fact::Number("p50_seconds", "median", seconds, Unit::kSeconds), Fact::Flag("known", "known", one.is_known),
       Fact::Count("out", "out", std::ranges::count_if(one.contenders, has_failed)),
       Fact::Text("failure", "failure", one.failure),
       TableOf("contenders", "contenders", one.contenders, ContenderRow).Detail()});
}

Fact MeasuredRow(const MeasuredModelReport& one) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "model", one.name), Fact::Count("measured", "measured", one.measured),
       Fact::Count("from_database", "known", one.from_database), Fact::Count("failed", "failed", one.failed),
       Fact::Count("left", "left", one.left), Fact::Count("left_out", "left out", one.left_out)});
}

}  // namespace

Fact PackFacts(const PackReport& report) {
  return Fact::Report(
      1, {TableOf("models", "models", report.models, PackedRow)
              .Columns({{"model", "{name}"}, {"candidates", "{candidates}"}, {"conversions", "{conversions}"}}),
          TableOf("play_offs", "play-offs", report.play_offs, PackedPlayOffRow)
              .Columns({{"model", "{model}"}, {"contenders", "{contenders}"}}),
          Fact::Texts("toolchains", "toolchains", report.toolchains),
          Fact::Texts("for_this_processor", "for this kind of processor only", report.for_this_processor),
          Fact::Count("threads", "threads", report.num_threads).Detail(),
          Fact::Line("compiled", {Fact::Count("partitions", "partitions", report.num_partitions),
                                  Fact::Count("compiled", "compiled", report.num_compiled),
                                  Fact::Count("schedules", "schedules", report.num_schedules),
                                  Fact::Count("declined", "declined", report.num_declined),
                                  Fact::Text("first_failure", "first", report.first_failure)})
              .Says("{partitions} partitions · {compiled} compiled, {schedules} of them other schedules · {declined} "
                    "declined[, first: {first_failure:160}]"),
          Fact::Line("wrote", {Fact::Text("output", "output", report.output.string()),
                               Fact::Bytes("output_bytes", "size", report.output_bytes),
                               Fact::Number("seconds", "time", report.seconds, Unit::kElapsed)})
              .Says("{output}  {output_bytes}  in {seconds}")});
}

Fact MeasureFacts(const MeasurePackReport& report) {
  return Fact::Report(
      1,
      {Fact::Line("machine", {Fact::Text("machine", "machine", report.machine), Fact::Text("cpu", "cpu", report.cpu),
                              Fact::Count("threads", "threads", report.num_threads)})
           .Says("{machine} · {cpu} · {threads} thread{s:threads}"),
       Fact::Texts("toolchains", "toolchains", report.toolchains), Fact::Texts("left_out", "left out", report.left_out),
       TableOf("models", "models", report.models, MeasuredRow)
           .Columns({{"model", "{name}"},
                     {"measured", "{measured}"},
                     {"known", "{from_database}"},
                     {"failed", "{failed}"},
                     {"left", "{left}"},
                     {"left out", "{left_out}"}}),
       TableOf("play_offs", "play-offs", report.play_offs, PlayedRow)
           .Columns({{"model", "{model}"}, {"winner", "{winner}"}, {"median", "{p50_seconds}"}, {"out", "{out}"}}),
       Fact::Count("trials", "schedules tried", report.trials).Detail(report.trials == 0),
       Fact::Line("database", {Fact::Text("database", "database", report.database),
                               Fact::Flag("complete", "complete", report.complete),
                               Fact::Number("seconds", "time", report.seconds, Unit::kElapsed)})
           .Says(report.complete ? "{database}  complete{?complete}, in {seconds}"
                                 : "{database}  more to measure: the same command goes on, after {seconds}")});
}

}  // namespace collage
