// pack_facts.cc: tables of models, and what is left.
#include "report/pack_facts.h"

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
       Fact::Count("trials", "schedules tried", report.trials).Detail(report.trials == 0),
       Fact::Line("database", {Fact::Text("database", "database", report.database),
                               Fact::Flag("complete", "complete", report.complete),
                               Fact::Number("seconds", "time", report.seconds, Unit::kElapsed)})
           .Says(report.complete ? "{database}  complete{?complete}, in {seconds}"
                                 : "{database}  more to measure: the same command goes on, after {seconds}")});
}

}  // namespace collage
