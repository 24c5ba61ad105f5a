// profile_facts.cc: a profile as facts: the text has a line for each step, the JSON all that was found out.
#include "report/profile_facts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace collage {
namespace {

constexpr double kOperationsOfProduct = 2;  // a product, and adding it

std::optional<double> PerSecond(std::optional<double> amount, double seconds) {
  if (!amount || *amount <= 0 || seconds <= 0) return std::nullopt;
  return *amount / seconds;
}

Fact Whole(std::string key, std::optional<double> amount) {
  return Fact::Integer(std::move(key), "", amount ? std::optional(std::llround(*amount)) : std::nullopt);
}

Fact PercentilesFact(std::string key, std::string label, const RunSeconds& seconds) {
  return Fact::Record(std::move(key), std::move(label),
                      {Fact::Seconds("p10", "p10", seconds.p10), Fact::Seconds("p50", "p50", seconds.p50),
                       Fact::Seconds("p90", "p90", seconds.p90)});
}

Fact StepRow(const StepProfile& step, size_t number, double cumulative) {
  const std::optional<double> flops =
      step.products ? std::optional(kOperationsOfProduct * *step.products) : std::nullopt;
  const double p50 = step.seconds.p50;
  std::optional<double> roof_share;
  if (step.roof_seconds && p50 > 0) roof_share = *step.roof_seconds / p50;
  std::vector<Fact> threads;
  for (const double seconds : step.thread_seconds) threads.push_back(Fact::Seconds("", "", seconds));
  Fact thread_seconds = Fact::Record("thread_seconds", "", std::move(threads));
  thread_seconds.kind = Fact::Kind::kList;
  return Fact::Record("", "",
                      {Fact::Integer("step", "step", static_cast<int64_t>(number)),
                       Fact::Text("kind", "", step.kind),
                       Fact::Text("plan", "", step.plan),
                       Fact::Integer("plan_step", "", step.plan_step),
                       Fact::Integer("partition", "", step.partition),
                       Fact::Text("toolchain", "toolchain", step.toolchain),
                       Fact::Text("operators", "operators", step.operators),
                       Fact::Texts("nodes", "nodes of the model", step.nodes).SeparatedBy(" "),
                       Fact::Count("calls", "", step.calls),
                       Fact::Seconds("p10_seconds", "", step.seconds.p10),
                       Fact::Seconds("p50_seconds", "p50", p50),
                       Fact::Seconds("p90_seconds", "", step.seconds.p90),
                       Fact::Number("share", "share", step.share, Unit::kShare),
                       Fact::Number("cumulative_share", "cumulative", cumulative, Unit::kShare),
                       Fact::Seconds("first_seconds", "", step.first_seconds),
                       Fact::Seconds("cold_seconds", "", step.cold_seconds),
                       Fact::Seconds("estimated_seconds", "", step.estimated_seconds),
                       Whole("flops", flops),
                       Whole("bytes", step.bytes),
                       Whole("weight_bytes", step.weight_bytes),
                       Fact::Number("flops_per_second", "", PerSecond(flops, p50), Unit::kBillions),
                       Fact::Number("bytes_per_second", "", PerSecond(step.bytes, p50), Unit::kBillions),
                       Fact::Seconds("roof_seconds", "", step.roof_seconds),
                       Fact::Number("roof_share", "", roof_share, Unit::kShare),
                       Fact::Text("bound", "", step.bound),
                       Fact::Numbers("counters", "", step.counters, Unit::kNone),
                       std::move(thread_seconds)});
}

/// Text has counters of one reason together, in the row of the first.
Fact CountersFact(const std::vector<CounterProfile>& counters) {
  std::vector<Fact> rows;
  std::map<std::string, std::string> names;  // by reason
  for (const CounterProfile& counter : counters) {
    std::string& of_reason = names[counter.reason];
    of_reason += (of_reason.empty() ? "" : ", ") + counter.name;
  }
  std::set<std::string> said;
  for (const CounterProfile& counter : counters) {
    std::string sentence;
    if (counter.reason.empty()) {
      sentence = "{name} {per_run}";
    } else if (said.insert(counter.reason).second) {
      sentence = Literal(names[counter.reason]) + ": {reason}";
    }
    rows.push_back(
        Fact::Record("", "",
                     {Fact::Text("name", "", counter.name), Fact::Flag("available", "", counter.reason.empty()),
                      Fact::Text("reason", "", counter.reason),
                      Fact::Number("per_run", "", counter.per_run,
                                   counter.name.ends_with("seconds") ? Unit::kSeconds : Unit::kNone)})
            .Says(std::move(sentence)));
  }
  return Fact::Table("counters", "counters", std::move(rows)).Inline().SeparatedBy(" · ");
}

Fact ArenaValueRow(const ArenaValue& value) {
  return Fact::Record("", "",
                      {Fact::Integer("value", "", value.value), Fact::Integer("offset", "", value.offset),
                       Fact::Bytes("bytes", "", value.bytes), Fact::Integer("first_step", "", value.first_step),
                       Fact::Integer("last_step", "", value.last_step), Fact::Text("type", "", value.type)});
}

Fact ArenaRow(const ArenaMap& arena) {
  return Fact::Record("", "",
                      {Fact::Text("plan", "", arena.plan), Fact::Text("memory", "", arena.memory),
                       Fact::Bytes("bytes", "", arena.bytes), Fact::Bytes("used_bytes", "", arena.used_bytes),
                       TableOf("values", "", arena.values, ArenaValueRow).Detail()})
      .Says("[{plan}: ]{bytes} of {memory} memory, {used_bytes} of it in use at once");
}

Fact SpanRow(const TimelineSpan& span) {
  return Fact::Record("", "",
                      {Fact::Integer("thread", "", span.thread), Fact::Integer("step", "", span.step),
                       Fact::Flag("region", "", span.is_region), Fact::Seconds("begin_seconds", "", span.begin_seconds),
                       Fact::Seconds("end_seconds", "", span.end_seconds)});
}

/// The sum of all estimates; nothing if a kernel has none.
std::optional<double> EstimateOf(const Profile& profile) {
  double all = 0;
  for (const StepProfile& step : profile.steps) {
    if (step.partition && !step.estimated_seconds) return std::nullopt;
    all += step.estimated_seconds.value_or(0);
  }
  return all > 0 ? std::optional(all) : std::nullopt;
}

Fact MemoryFact(const Profile& profile) {
  int64_t arena = 0;
  for (const ArenaMap& one : profile.arenas) arena += one.bytes;
  const auto known = [](std::string key, std::optional<int64_t> bytes) {
    return Fact::Integer(std::move(key), "", bytes, Unit::kBytes);
  };
  return Fact::Record(
             "memory", "memory",
             {known("peak_bytes", profile.memory.peak_bytes), known("resident_bytes", profile.memory.resident_bytes),
              Fact::Bytes("arena_bytes", "", arena), Fact::Bytes("weight_bytes", "", profile.memory.weight_bytes),
              Fact::Bytes("code_bytes", "", profile.memory.code_bytes)})
      .Says(
          "{peak_bytes} at most in this process, {resident_bytes} now · weights {weight_bytes} · arenas {arena_bytes} "
          "· "
          "code {code_bytes}");
}

Fact RoofFact(const std::optional<RoofProfile>& roof) {
  if (!roof) return Fact::Text("roof", "", std::nullopt);
  return Fact::Record("roof", "roof",
                      {Fact::Number("flops_per_second", "", kOperationsOfProduct * roof->multiply_adds_per_second,
                                    Unit::kBillions),
                       Fact::Number("near_bytes_per_second", "", roof->near_bytes_per_second, Unit::kBillions),
                       Fact::Number("shared_bytes_per_second", "", roof->shared_bytes_per_second, Unit::kBillions),
                       Fact::Number("memory_bytes_per_second", "", roof->memory_bytes_per_second, Unit::kBillions)})
      .Says(
          "{flops_per_second} GFLOP/s in float32 · reads near caches {near_bytes_per_second}, the shared one "
          "{shared_bytes_per_second}, memory {memory_bytes_per_second} GB/s");
}

std::vector<size_t> Listed(const Profile& profile, const StepOrder& order) {
  std::vector<size_t> listed(profile.steps.size());
  std::iota(listed.begin(), listed.end(), size_t{0});
  if (order.by_time) {
    std::ranges::stable_sort(listed, std::greater<>(), [&](size_t i) { return profile.steps[i].seconds.p50; });
  }
  return listed;
}

/// The columns of steps, without those that are empty because nobody looked.
std::vector<Fact::Column> ColumnsOf(const Profile& profile) {
  std::vector<Fact::Column> columns{
      {"step", "{step}"}, {"p50", "{p50_seconds}"}, {"share", "{share}"}, {"cumulative", "{cumulative_share}"}};
  if (profile.roof) columns.push_back({"of roof", "[{roof_share} {bound}]"});
  columns.push_back({"GFLOP/s", "[{flops_per_second}]"});
  columns.push_back({"GB/s", "[{bytes_per_second}]"});
  if (profile.cold_seconds) columns.push_back({"cold", "[{cold_seconds}]"});
  columns.push_back({"estimated", "[{estimated_seconds}]"});
  columns.push_back({"toolchain", "{toolchain}"});
  columns.push_back({"operators", "{operators:60}"});
  columns.push_back({"nodes of the model", "[{nodes:60}]"});
  return columns;
}

}  // namespace

Fact StepsFact(const Profile& profile, const StepOrder& order) {
  std::vector<Fact> rows;
  double cumulative = 0;
  for (const size_t i : Listed(profile, order)) {
    cumulative += profile.steps[i].share;
    rows.push_back(StepRow(profile.steps[i], i, cumulative));
    if (order.shown > 0 && rows.size() > order.shown) rows.back() = std::move(rows.back()).Detail();
  }
  return Fact::Table("steps", "steps", std::move(rows)).Columns(ColumnsOf(profile));
}

Fact ProfileFacts(const Profile& profile, const StepOrder& order) {
  std::vector<Fact> facts{
      Fact::Line("", {Fact::Text("executable", "", profile.executable), Fact::Text("machine", "", profile.machine),
                      Fact::Count("threads", "", profile.num_threads)})
          .Says("[{executable} · ]{threads} thread{s:threads} · {machine}"),
      PercentilesFact("seconds", "run", profile.seconds).Says("p50 {p50}, p10 {p10}, p90 {p90}"),
      Fact::Line(" ", {Fact::Count("runs", "", profile.runs),
                       Fact::Seconds("first_run_seconds", "", profile.first_run_seconds),
                       Fact::Seconds("cold_seconds", "", profile.cold_seconds),
                       Fact::Seconds("load_seconds", "", profile.load_seconds)})
          .Says("{runs} runs[ · loaded in {load_seconds}] · first run {first_run_seconds}[ · caches evicted "
                "before: {cold_seconds}]"),
      PercentilesFact("timed_seconds", "timed", profile.timed)
          .Says("p50 {p50} with every step timed, in turns with the others{?p10}{?p90}"),
      Fact::Line(" ", {Fact::Number("overhead", "", profile.overhead, Unit::kMoreShare),
                       Fact::Seconds("between_steps_seconds", "", profile.between_steps),
                       Fact::Seconds("estimated_seconds", "", EstimateOf(profile))})
          .Says("timing adds {overhead} · {between_steps_seconds} between steps[ · costs of the search add up to "
                "{estimated_seconds}]"),
      RoofFact(profile.roof),
      MemoryFact(profile),
      TableOf("arenas", "arenas", profile.arenas, ArenaRow),
      CountersFact(profile.counters),
      StepsFact(profile, order),
      TableOf("timeline", "", profile.timeline, SpanRow).Detail()};
  if (order.shown > 0 && profile.steps.size() > order.shown) {
    facts.push_back(Fact::Line("", {Fact::Count("", "", static_cast<int64_t>(profile.steps.size()))})
                        .Says(Literal("the " + std::to_string(order.shown) + " longest of " +
                                      std::to_string(profile.steps.size()) + " steps; --top 0 shows all")));
  }
  return Fact::Report(1, std::move(facts));
}

}  // namespace collage
