// compile_facts.cc: what compiling and tuning found out, as facts.
#include "report/compile_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/report/report_numbers.h"
#include "report/numbers.h"
#include "report/toolchain_facts.h"
#include "report/units.h"
#include "report/verdict.h"

namespace collage {
namespace {

constexpr int kSchema = 2;

std::map<std::string, int64_t> PartitionsOf(const Contender& contender) {
  return {contender.partitions.begin(), contender.partitions.end()};
}

Fact ToolchainsTable(const CompileReport& report) {
  std::vector<Fact> rows;
  for (const ToolchainReport& toolchain : report.toolchains) {
    std::vector<Fact> facts = FactsOfToolchain(toolchain);
    facts.push_back(Fact::Flag("takes_part", "takes part", toolchain.takes_part).Detail());
    facts.push_back(Fact::Texts("takes_part_as", "takes part as", toolchain.participants));
    Fact row = Fact::Record("", "", std::move(facts))
                   .Says("[{takes_part_as} {version}][{name} is not here: {reason}]{?version}{?reason}{?hooks}");
    // Nobody asked for it, and nobody expects it.
    if (!toolchain.available && !toolchain.is_default) row = std::move(row).Detail();
    rows.push_back(std::move(row));
  }
  return Fact::Table("toolchains", "toolchains", std::move(rows)).Inline();
}

Fact PrecisionLine(const CompileReport& report) {
  return Fact::Line("precision",
                    {Fact::Texts("precision_variants", "any", report.precision_variants),
                     Fact::Text("no_precision_variants", "no more than float32", report.no_precision_variants)})
      .Says("[any: {precision_variants}][any: no more than float32: {no_precision_variants}]");
}

Fact SearchRecord(const CompileReport& report) {
  return Fact::Record("search", "search", FactsOfNumbers(SearchNumbers(), report, Unit::kSeconds))
      .Says(
          "{candidates} candidates, with formats {variants} · {measured} measured[ and {remeasured} again], "
          "{from_database} from the database, {failed} failed");
}

Fact FailuresTable(const CompileReport& report) {
  std::vector<Fact> rows;
  for (const auto& [kind, failure] : report.failures) {
    rows.push_back(Fact::Record("", "",
                                {Fact::Text("kind", "kind", kind), Fact::Count("count", "times", failure.first),
                                 Fact::Text("example", "first", failure.second)})
                       .Says("{count} x {kind}   first: {example:160}"));
  }
  return Fact::Table("failures", "failures", std::move(rows));
}

Fact TuningRecord(const TuningReport& tuning) {
  std::vector<Fact> facts = FactsOfNumbers(TuningNumbers(), tuning, Unit::kSeconds);
  facts.push_back(Fact::Number("trials_per_minute", "trials per minute", tuning.trials_per_minute(), Unit::kPerMinute));
  Fact record = Fact::Record("tuning", "schedules", std::move(facts));
  if (tuning.partitions == 0) return record;
  return std::move(record).Says(
      "{trials} trials in {seconds}, {trials_per_minute} a minute, {known_trials} known · {faster} of {partitions} "
      "partitions faster, by {gain} of all");
}

/// How much faster a cover of the same candidates could be.
Fact CertificateRecord(const CompileReport& report) {
  const Certificate& certificate = *report.certificate;
  const std::string candidates = report.budget_spent ? "candidates measured so far" : "candidates";
  return Fact::Record("certificate", "certificate",
                      {Fact::Flag("exact", "exact", certificate.is_exact),
                       Fact::Number("gap", "gap", certificate.gap(), Unit::kShare),
                       Fact::Seconds("cover_seconds", "cost of the cover", certificate.cover_seconds),
                       Fact::Seconds("least_seconds", "least cost of any", certificate.least_seconds),
                       Fact::Count("dropped", "states dropped", certificate.num_dropped),
                       Fact::Texts("capped", "toolchains with more candidates", certificate.capped)})
      .Says("No cover of these " + candidates + " is " + (certificate.gap() < kNoGap ? "" : "more than {gap} ") +
            "faster than the best mix, by their costs.[ The search dropped {dropped} "
            "states.][ There are more candidates of {capped} than were tried.]"
            "[{?exact}][{?gap}][{?cover_seconds}][{?least_seconds}]");
}

/// "dnnl", "native in 2 partitions", "dnnl and native in 3 partitions".
std::string WayOf(const PartitionAlternative& alternative) {
  std::string names;
  int count = 0;
  for (const auto& [name, partitions] : alternative.partitions) {
    names += (names.empty() ? "" : " and ") + name;
    count += partitions;
  }
  return count == 1 ? names : fmt::format("{} in {} partitions", names, count);
}

Fact AlternativeRow(const PartitionAlternative& one) {
  const std::string extra = one.extra_seconds == 0 ? "+0{?extra_seconds}" : "{extra_seconds}";
  return Fact::Record("", "",
                      {Fact::Counts("partitions", "partitions", {one.partitions.begin(), one.partitions.end()}),
                       Fact::Number("extra_seconds", "more", one.extra_seconds, Unit::kDifference),
                       Fact::Flag("at_least", "at least", one.is_bound)})
      .Says(Literal(WayOf(one)) + "[ at least{?at_least}] " + extra + "{?partitions}");
}

Fact ChoiceRow(const PartitionChoice& one) {
  std::vector<Fact> refusals;
  for (const auto& [toolchain, reason] : one.refusals) {
    refusals.push_back(
        Fact::Record("", "", {Fact::Text("toolchain", "toolchain", toolchain), Fact::Text("reason", "reason", reason)})
            .Says("{toolchain}: {reason:160}"));
  }
  return Fact::Record(
             "", "",
             {Fact::Text("operators", "operators", one.operators), Fact::Count("calls", "", one.num_operators),
              Fact::Text("first_node", "first node", one.first_node),
              Fact::Text("toolchain", "toolchain", one.toolchain), Fact::Seconds("seconds", "cost", one.seconds),
              Fact::Number("share", "of the mix", one.share, Unit::kShare),
              TableOf("alternatives", "else", one.alternatives, AlternativeRow).SeparatedBy("; "),
              Fact::Table("refused", "refused", std::move(refusals)).SeparatedBy("; ").Detail()})
      .Says("{operators:80}[ at {first_node}], {toolchain} {seconds} ({share}): " +
            std::string(one.alternatives.empty() ? "no other way[ ({refused})]" : "best other way {alternatives}"));
}

/// Why the best mix has its partitions.
Fact ChoicesTable(const CompileReport& report) {
  constexpr size_t kShown = 5;
  std::vector<Fact> rows;
  for (const PartitionChoice& one : report.choices) rows.push_back(ChoiceRow(one).Detail(rows.size() >= kShown));
  return Fact::Table("choices", "why", std::move(rows));
}

/// How much of the best mix may be computed in a lower precision.
std::string BoundedSentence(const BoundedMix& bounded) {
  const std::string cost = "({built} mixes built in {seconds})";
  const std::string best =
      "the best mix has {best_partitions} partition{s:best_partitions} in lower precision, off by {best_error}";
  if (bounded.best_error <= bounded.allowed) return best + ", {allowed} is allowed " + cost;
  if (bounded.partitions == 0) return best + ", {allowed} is allowed: no part that fits was found " + cost;
  return "collage-bounded has {partitions} partition{s:partitions} in lower precision, off by {error}, {allowed} is "
         "allowed; " +
         best + " " + cost;
}

Fact BoundedRecord(const BoundedMix& bounded) {
  return Fact::Record("bounded_mix", "precision",
                      {Fact::Number("allowed", "allowed error", bounded.allowed),
                       Fact::Number("best_error", "error of the best mix", bounded.best_error, Unit::kError),
                       Fact::Count("best_partitions", "of its partitions in lower precision", bounded.best_partitions),
                       Fact::Number("error", "error", bounded.error, Unit::kError),
                       Fact::Count("partitions", "partitions in lower precision", bounded.partitions),
                       Fact::Count("built", "mixes built", bounded.num_built),
                       Fact::Number("seconds", "time", bounded.seconds, Unit::kElapsed)})
      .Says(BoundedSentence(bounded) + "[{?error}][{?partitions}]");
}

/// Nothing for a contender that was built and not run; one that failed has 0.
std::optional<double> IfTimed(const Contender& one, double seconds) {
  return one.samples == 0 && one.failure.empty() ? std::nullopt : std::optional(seconds);
}

Fact ContenderRow(const Contender& one, const Contender* winner) {
  const bool has_ratio = winner != nullptr && winner->p50 > 0 && one.failure.empty();
  const std::optional<double> ratio = has_ratio ? std::optional(one.p50 / winner->p50) : std::nullopt;
  Fact row = Fact::Record(
      "", "",
      {Fact::Text("name", "play-off", one.name), Fact::Text("words", "in words", WordsFor(one)).Detail(),
       Fact::Flag("single", "a toolchain alone", one.is_single),
       Fact::Flag("extra", "chosen by no search", one.is_extra).Detail(),
       Fact::Seconds("estimated_seconds", "estimated", one.estimated_seconds),
       Fact::Seconds("p50_seconds", "p50", IfTimed(one, one.p50)),
       Fact::Seconds("spread_seconds", "p90 - p50", IfTimed(one, one.p90 - one.p50)).Detail(),
       Fact::Number("to_winner", "to the winner", ratio, Unit::kRatio),
       Fact::Seconds("p90_seconds", "p90", IfTimed(one, one.p90)),
       Fact::Seconds("min_seconds", "min", one.minimum).Detail(), Fact::Count("samples", "runs", one.samples).Detail(),
       Fact::Number("relative", "relative", one.relative, Unit::kFineRatio).Detail(),
       Fact::Number("first_relative", "relative at first", one.first_relative, Unit::kFineRatio).Detail(),
       Fact::Flag("is_finalist", "in the final", one.is_finalist).Detail(),
       Fact::Number("max_error", "max error", one.max_error, Unit::kError).Detail(),
       Fact::Counts("partitions", "partitions", PartitionsOf(one)), Fact::Text("failure", "failure", one.failure)});
  if (!one.failure.empty()) return std::move(row).Says("{name} is out: {failure}");
  return std::move(row).Detail(one.is_extra && &one != winner);
}

Fact PlayOffTable(const CompileReport& report, const Contender* winner) {
  std::vector<Fact> rows;
  for (const Contender& one : report.contenders) rows.push_back(ContenderRow(one, winner));
  return Fact::Table("play_off", "play-off", std::move(rows))
      .Columns({{"play-off", "{words}{?name}{?single}"},
                {"p50", "[{p50_seconds}]"},
                {"p90", "[{p90_seconds}]"},
                {"time", "[{to_winner}]"},
                {"estimated", "[{estimated_seconds}]"},
                {"partitions", "{partitions}"}});
}

Fact RegionsTable(const CompileReport& report) {
  std::vector<Fact> rows;
  for (const CompileReport& region : report.regions) rows.push_back(CompileFacts(region).Says(""));
  return Fact::Table("regions", "regions", std::move(rows))
      .Columns({{"region", "{model}{?verdict}"},
                {"operators", "{operators}"},
                {"winner", "{winner}"},
                {"p50", "{p50_seconds}"},
                {"p90 - p50", "{spread_seconds}"},
                {"partitions", "{partitions}"}});
}

Fact WinnerLine(const CompileReport& report, const Contender* winner) {
  std::optional<double> p50, spread, estimate;
  if (winner != nullptr) {
    p50 = IfTimed(*winner, winner->p50);
    spread = IfTimed(*winner, winner->p90 - winner->p50);
    if (!p50) estimate = winner->estimated_seconds;
  }
  return Fact::Line("winner",
                    {Fact::Text("winner", "winner", report.winner), Fact::Seconds("p50_seconds", "p50", p50),
                     Fact::Seconds("spread_seconds", "p90 - p50", spread),
                     Fact::Seconds("estimated_seconds", "estimated", estimate),
                     Fact::Counts("partitions", "partitions",
                                  winner == nullptr ? std::map<std::string, int64_t>{} : PartitionsOf(*winner))})
      .Says((winner == nullptr ? "{winner}" : Literal(WordsFor(*winner)) + "{?winner}") +
            "[: p50 {p50_seconds}][, p90 {spread_seconds} more][: {estimated_seconds}, estimated][ · {partitions}]");
}

/// RFC 0.81, Drawbacks: the winner against the best of what is there without a search.
Fact GainLine(const CompileReport& report) {
  const std::map<std::string, double>& losses = report.apparent_loss_seconds;
  const auto best = std::ranges::max_element(losses, {}, [](const auto& loss) { return loss.second; });
  std::string name, sentence;
  if (best != losses.end()) {
    name = best->first;
    const std::string by = best->second == 0 ? "" : " by " + FormatSeconds(std::abs(best->second));
    sentence = fmt::format("{}{} than {{best_baseline}}, the best partitioning without a search.",
                           best->second < 0   ? "Faster"
                           : best->second > 0 ? "Slower"
                                              : "No faster",
                           by);
  }
  return Fact::Line("gain", {Fact::Text("best_baseline", "best without a search", name),
                             Fact::Numbers("apparent_loss_seconds", "apparent loss", losses, Unit::kDifference)})
      .Says(sentence + "{?best_baseline}{?apparent_loss_seconds}");
}

/// RFC 0.81, Drawbacks: what adding up costs is worth.
Fact CostsLine(const CompileReport& report) {
  const double error = report.additive_error_seconds;
  std::string additive;
  if (error != 0) {
    additive = fmt::format("The best mix takes {} {} than its costs add up to (additive error).",
                           FormatSeconds(std::abs(error)), error > 0 ? "more" : "less");
  }
  const std::string gap = additive.empty() ? "" : " ";
  std::string optimality = "[" + gap + "Optimality loss {optimality_loss_unknown}.]";
  if (report.optimality_loss_seconds && *report.optimality_loss_seconds > 0) {
    optimality = fmt::format(
        "{}The best of all {{covers}} covers takes {} less than the best that was searched (optimality loss).", gap,
        FormatSeconds(*report.optimality_loss_seconds));
  } else if (report.optimality_loss_seconds) {
    optimality = gap + "None of all {covers} covers is faster than the best that was searched (optimality loss 0).";
  }
  return Fact::Line("costs", {Fact::Number("additive_error_seconds", "additive error", error, Unit::kDifference),
                              Fact::Number("optimality_loss_seconds", "optimality loss", report.optimality_loss_seconds,
                                           Unit::kDifference),
                              Fact::Text("optimality_loss_unknown", "optimality loss", report.optimality_loss_unknown),
                              Fact::Count("covers", "covers in all", report.num_covers)})
      .Says(additive + optimality + "{?additive_error_seconds}{?optimality_loss_seconds}{?covers}");
}

/// The plans for sizes that were named, beside the kernels for all others.
Fact SizesLine(const CompileReport& report) {
  return Fact::Line("sizes", {Fact::Texts("searched_sizes", "plans for", report.searched_sizes)})
      .Says("[plans for {searched_sizes}; at other sizes kernels for any size]");
}

Fact VerifiedRecord(const CompileReport& report, const Contender* winner) {
  std::optional<double> error;
  std::string sentence = "[not: {not_verified}]{?max_error}";
  if (!report.verified_sizes.empty()) {
    error = report.verified_error;
    sentence = "the program at {sizes}: max error {max_error} of the largest result[ · not: {not_verified}]";
  } else if (winner != nullptr && report.not_verified.empty()) {
    error = winner->max_error;
    sentence =
        Literal(WordsFor(*winner)) + " against the reference evaluation: max error {max_error} of the largest result";
  }
  return Fact::Record("verified", "verified",
                      {Fact::Texts("sizes", "sizes", report.verified_sizes),
                       Fact::Number("max_error", "max error", error, Unit::kError),
                       Fact::Text("not_verified", "not", report.not_verified)})
      .Says(sentence);
}

Fact EvaluatedRow(const EvaluatedOperator& one) {
  return Fact::Record("", "",
                      {Fact::Text("operator", "operator", one.op), Fact::Count("count", "calls", one.count),
                       Fact::Text("first_node", "first node", one.node), Fact::Text("reason", "reason", one.reason),
                       Fact::Flag("product", "a contraction or convolution", one.is_product)})
      .Says("{count} x {operator} by reference evaluation[, first at {first_node}]: {reason}");
}

Fact PartRow(const ToolchainPart& part) {
  std::string sentence =
      "{toolchain}: [{any_size_kernels} kernel{s:any_size_kernels} for any size][none for any size, {not_at_any_size}] "
      "· "
      "[{plan_partitions} partition{s:plan_partitions} of plans][none in plans, {not_in_plans}]";
  if (!part.not_in_plans.empty() && part.not_in_plans == part.not_at_any_size) {
    sentence = "{toolchain}: nothing, {not_in_plans}{?not_at_any_size}{?any_size_kernels}{?plan_partitions}";
  }
  return Fact::Record("", "",
                      {Fact::Text("toolchain", "toolchain", part.toolchain),
                       Fact::Count("any_size_kernels", "kernels for any size", part.any_size_kernels),
                       Fact::Text("not_at_any_size", "none for any size", part.not_at_any_size),
                       Fact::Count("plan_partitions", "partitions of plans", part.plan_partitions),
                       Fact::Text("not_in_plans", "none in plans", part.not_in_plans)})
      .Says(sentence);
}

Fact OutputLine(const CompileReport& report) {
  std::vector<Fact> seconds = FactsOfNumbers(SecondsNumbers(), report, Unit::kElapsed);
  for (Fact& part : FactsOfNumbers(PlayOffNumbers(), report.play_off_parts, Unit::kElapsed)) {
    seconds.push_back(std::move(part));
  }
  return Fact::Line("wrote", {Fact::Text("output", "output", report.output.string()),
                              Fact::Bytes("output_bytes", "size", report.output_bytes),
                              Fact::Record("seconds", "time", std::move(seconds))
                                  .Says("{total} (import {import}, search {search}, play-off {play_off}: build "
                                        "{build}, check {check}, timing {timing}, write {write})")})
      .Says("{output}  {output_bytes}  in {seconds}");
}

std::string StateOf(const TunedModel& one) {
  if (one.failure) return "failed: " + one.failure->message();
  return one.report.budget_spent || one.report.tuning.budget_spent ? "more to measure" : "complete";
}

Fact TunedRow(const TunedModel& one) {
  return Fact::Record(
      "", "",
      {Fact::Text("model", "model", one.model), Fact::Count("candidates", "candidates", one.report.num_candidates),
       Fact::Count("measured", "measured", one.report.num_measured),
       Fact::Count("from_database", "known", one.report.num_from_database),
       Fact::Count("failed", "failed", one.report.num_failed),
       Fact::Seconds("seconds", "time", one.report.total_seconds),
       Fact::Flag("complete", "complete", StateOf(one) == "complete"), Fact::Text("state", "state", StateOf(one)),
       Fact::Text("error", "error", one.failure ? one.failure->message() : "").Detail(),
       TuningRecord(one.report.tuning)});
}

}  // namespace

Fact CompileFacts(const CompileReport& report) {
  const auto found = std::ranges::find(report.contenders, report.winner, &Contender::name);
  const Contender* winner = found == report.contenders.end() ? nullptr : &*found;
  std::vector<Fact> facts{
      Fact::Text("verdict", "verdict", VerdictOf(report)),
      Fact::Text("model", "model", report.model),
      Fact::Count("operators", "operators", report.num_operators),
      Fact::Integer("parameters", "parameters", report.num_parameters, Unit::kMillions),
      Fact::Line("machine", {Fact::Text("machine", "machine", report.machine),
                             Fact::Count("threads", "threads", report.num_threads)})
          .Says("{machine} · {threads} thread{s:threads}"),
      ToolchainsTable(report),
      PrecisionLine(report),
      SearchRecord(report),
      FailuresTable(report),
      report.certificate ? CertificateRecord(report) : Fact::Text("certificate", "certificate", std::nullopt),
      ChoicesTable(report),
      TuningRecord(report.tuning),
      report.bounded ? BoundedRecord(*report.bounded) : Fact::Text("bounded_mix", "precision", std::nullopt),
  };
  facts.push_back(PlayOffTable(report, winner));
  facts.push_back(RegionsTable(report));
  facts.push_back(SizesLine(report));
  facts.push_back(WinnerLine(report, winner));
  facts.push_back(GainLine(report));
  facts.push_back(CostsLine(report));
  facts.push_back(VerifiedRecord(report, winner));
  facts.push_back(TableOf("parts", "parts", report.parts, PartRow));
  facts.push_back(TableOf("reference_evaluation", "evaluated", report.evaluated, EvaluatedRow));
  facts.push_back(OutputLine(report));
  return Fact::Report(kSchema, std::move(facts))
      .Says("[{verdict}\n]{model}  {operators} operators · {parameters} parameters");
}

Fact TuneFacts(const std::vector<TunedModel>& models, bool interrupted) {
  Fact table = TableOf("models", "models", models, TunedRow)
                   .Columns({{"model", "{model}"},
                             {"candidates", "{candidates}"},
                             {"measured", "{measured}"},
                             {"known", "{from_database}"},
                             {"failed", "{failed}"},
                             {"time", "{seconds}"},
                             {"state", "{state}{?complete}"}});
  const auto is_tuned = [](const TunedModel& one) { return one.report.tuning.partitions > 0; };
  if (std::ranges::any_of(models, is_tuned)) table.columns.push_back({"schedules", "{tuning}"});
  return Fact::Report(
      1, {std::move(table), Fact::Line("interrupted", {Fact::Flag("interrupted", "interrupted", interrupted)})
                                .Says("[{?interrupted}all that was measured is kept; the same command goes on]")});
}

}  // namespace collage
