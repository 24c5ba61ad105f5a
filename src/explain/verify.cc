// verify.cc: partitionings are compiled without a search, and timed in turn.
#include "explain/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "collage/compile.h"
#include "collage/runtime/executable.h"
#include "collage/settings.h"
#include "collage/support/error.h"
#include "cost/measure/timing.h"
#include "cost/measure/timing_lock.h"
#include "driver/play_off/ranking.h"
#include "driver/run_compilation.h"
#include "explain/why_facts.h"
#include "runtime/random_inputs.h"
#include "support/file.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;
constexpr int kLeastRounds = 20;
constexpr int kMostRounds = 2000;

/// A value of a setting, as SettingsJson writes it.
SettingValue ValueFrom(const Json& json) {
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) return json.get<std::vector<std::string>>();
  if (!json.is_object() || json.empty()) return std::monostate();
  if (json.begin()->is_array()) return json.get<std::map<std::string, Shape>>();
  return json.get<std::map<std::string, std::string>>();
}

/// The options by which a compilation had its graph and its toolchains.
CompileOptions OptionsOf(const Explanation& explanation) {
  CompileOptions options;
  for (const Setting& setting : Settings()) {
    const bool shapes_graph = setting.group == "Model" || setting.group == "Toolchains" || setting.group == "Passes";
    if (!shapes_graph || !explanation.settings.contains(setting.name)) continue;
    SetSetting(options, setting, ValueFrom(explanation.settings.at(setting.name)), setting.flag);
  }
  options.num_threads = explanation.machine.threads;
  options.explanation = "none";
  options.max_optimality_covers = 0;
  return options;
}

bool IsProgram(const Explanation& explanation) {
  const auto regions = explanation.report.find("regions");
  return regions != explanation.report.end() && !regions->empty();
}

/// A model, or one region of a program, as it is compiled again.
struct Recompilation {
  std::filesystem::path model;
  std::optional<size_t> region;  ///< if it is a program
  CompileOptions options;
  TemporaryFolder folder = {};
};

/// A graph that was compiled as a file of partitions says, with inputs.
class CompiledMix {
 public:
  CompiledMix(const Recompilation& again, const std::string& partitioning, const std::string& name) {
    CompileOptions options = again.options;
    options.partitioning = again.folder / (name + ".json");
    options.output = again.folder / (name + ".clg");
    options.database = again.folder / "tuning.db";
    WriteFile(options.partitioning, partitioning);
    if (again.region) {
      RunRegion(again.model, *again.region, options);
    } else {
      RunCompilation(again.model, options);
    }
    const Executable executable = Executable::Load(options.output);
    instance_ = std::make_unique<ExecutionInstance>(executable);
    uint64_t seed = 1;
    const std::vector<PortInfo> ports = executable.inputs();
    for (size_t i = 0; i < ports.size(); ++i) {
      const Tensor tensor = Tensor::Empty(ports[i].shape, ports[i].dtype);
      FillRandom(tensor, seed++);
      instance_->SetInput(i, tensor);
    }
  }

  void Run() { instance_->Run(); }

 private:
  std::unique_ptr<ExecutionInstance> instance_;
};

/// Times both in turn for about `seconds`.
void TimeInTurn(CompiledMix& before, CompiledMix& after, double seconds, VerifiedClaim& claim) {
  const std::vector<std::function<void()>> runs{[&] { before.Run(); }, [&] { after.Run(); }};
  const double round = SecondsOf([&] { TimeInterleaved(runs, 2); }) / 2;
  const bool settles = round / 2 < kSettleBelowSeconds;
  const int rounds =
      std::clamp(static_cast<int>(seconds / std::max(settles ? 2 * round : round, 1e-6)), kLeastRounds, kMostRounds);
  const TimingLock lock(TimingLock::Mode::kAlone);
  const std::vector<Samples> samples = TimeInterleaved(runs, rounds, settles);
  Samples differences;
  for (int i = 0; i < rounds; ++i) {
    const auto at = static_cast<size_t>(i);
    differences.Add(samples[1].values()[at] - samples[0].values()[at]);
  }
  claim.rounds = rounds;
  claim.before_seconds = samples[0].p50();
  claim.after_seconds = samples[1].p50();
  claim.extra_seconds = differences.p50();
  const std::optional<Interval> interval = differences.QuantileInterval(0.5);
  const double builds = kAsGood * claim.before_seconds;
  claim.low_seconds = (interval ? interval->low : claim.extra_seconds) - builds;
  claim.high_seconds = (interval ? interval->high : claim.extra_seconds) + builds;
}

Json PartitionJson(const GraphExplanation& graph, int number) {
  const ExplainedCandidate& candidate = graph.candidates[static_cast<size_t>(number)];
  const ExplainedCost* cost = CostOf(graph, candidate);
  Json one{{"toolchain", graph.toolchains[static_cast<size_t>(candidate.toolchain)].name},
           {"inside", candidate.nodes},
           {"rule", candidate.rule},
           {"inputs", candidate.inputs},
           {"outputs", candidate.outputs}};
  if (cost != nullptr && cost->seconds) one["seconds"] = *cost->seconds;
  if (cost != nullptr && !cost->schedule.empty()) one["schedule"] = cost->schedule;
  if (!candidate.nested.is_null()) one["nested"] = candidate.nested;
  return one;
}

Fact ClaimRow(const Explanation& explanation, const VerifiedClaim& claim) {
  const GraphExplanation& graph = explanation.graphs[claim.place.graph];
  const ExplainedPartition& partition = graph.partitions[claim.place.partition];
  const ExplainedAlternative* one = claim.alternative;
  const bool is_timed = claim.failure.empty();
  const auto if_timed = [&](double seconds) { return is_timed ? std::optional(seconds) : std::nullopt; };
  const auto claimed = [&](std::optional<double> seconds) { return one == nullptr ? std::nullopt : seconds; };
  Fact row = Fact::Record(
      "", "",
      {Fact::Integer("partition", "partition", static_cast<int64_t>(claim.place.partition)),
       Fact::Text("operators", "operators", partition.operators),
       Fact::Text("way", "runner-up", one == nullptr ? "" : WayOf(graph, *one)),
       Fact::Number("claimed_seconds", "claimed", claimed(one == nullptr ? 0 : one->extra_seconds), Unit::kDifference),
       Fact::Number("claimed_low_seconds", "from", one == nullptr ? std::nullopt : one->low_seconds, Unit::kDifference),
       Fact::Number("claimed_high_seconds", "to", one == nullptr ? std::nullopt : one->high_seconds, Unit::kDifference),
       Fact::Number("measured_seconds", "measured", if_timed(claim.extra_seconds), Unit::kDifference),
       Fact::Number("measured_low_seconds", "from", if_timed(claim.low_seconds), Unit::kDifference),
       Fact::Number("measured_high_seconds", "to", if_timed(claim.high_seconds), Unit::kDifference),
       Fact::Seconds("before_seconds", "whole graph", if_timed(claim.before_seconds)),
       Fact::Seconds("after_seconds", "with the runner-up", if_timed(claim.after_seconds)),
       Fact::Count("rounds", "rounds", claim.rounds).Detail(), Fact::Flag("holds", "holds", claim.holds()).Detail(),
       Fact::Text("verdict", "verdict",
                  !is_timed       ? ""
                  : claim.holds() ? "holds"
                                  : "does not hold"),
       Fact::Text("failure", "failure", claim.failure)});
  if (!is_timed) return std::move(row).Says("partition {partition} ({operators:60}) was not verified: {failure:200}");
  return row;
}

}  // namespace

bool VerifiedClaim::holds() const {
  return failure.empty() && alternative != nullptr && low_seconds <= alternative->high_seconds.value_or(0) &&
         high_seconds >= alternative->low_seconds.value_or(0);
}

const ExplainedAlternative* RunnerUpOf(const ExplainedPartition& partition) {
  const auto found = std::ranges::find(partition.alternatives, false, &ExplainedAlternative::at_least);
  return found == partition.alternatives.end() ? nullptr : &*found;
}

std::vector<PartitionPlace> MostExpensive(const Explanation& explanation, size_t graph, size_t count) {
  const auto& partitions = explanation.graphs[graph].partitions;
  std::vector<size_t> order(partitions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return partitions[i].seconds.value_or(0); });
  if (order.size() > count) order.resize(count);
  std::vector<PartitionPlace> places;
  for (const size_t one : order) places.push_back({graph, one});
  return places;
}

std::string PartitioningOf(const GraphExplanation& graph, const ExplainedAlternative* alternative) {
  Json partitions = Json::array();
  for (size_t i = 0; i < graph.partitions.size(); ++i) {
    const bool is_replaced = alternative != nullptr && std::ranges::find(alternative->replaces, static_cast<int>(i)) !=
                                                           alternative->replaces.end();
    if (!is_replaced) partitions.push_back(PartitionJson(graph, graph.partitions[i].candidate));
  }
  if (alternative != nullptr) {
    for (const int number : alternative->candidates) partitions.push_back(PartitionJson(graph, number));
  }
  const Json json{{"format", "collage-partitioning"},
                  {"version", 1},
                  {"graph", {{"nodes", graph.nodes.size()}, {"hash", graph.hash}}},
                  {"partitions", std::move(partitions)}};
  return json.dump();
}

std::vector<VerifiedClaim> VerifyClaims(const Explanation& explanation, const std::vector<PartitionPlace>& places,
                                        const VerifyOptions& options) {
  std::vector<VerifiedClaim> claims;
  if (places.empty()) return claims;
  const auto tell = [&](const std::string& what) {
    if (options.on_progress) options.on_progress(what);
  };
  const size_t number = places.front().graph;
  const GraphExplanation& graph = explanation.graphs.at(number);
  const Recompilation again{options.model, IsProgram(explanation) ? std::optional(number) : std::nullopt,
                            OptionsOf(explanation)};
  tell("compiling the mix as it is");
  CompiledMix before(again, PartitioningOf(graph, nullptr), "before");
  for (const PartitionPlace& place : places) {
    VerifiedClaim& claim = claims.emplace_back();
    claim.place = place;
    claim.alternative = RunnerUpOf(graph.partitions[place.partition]);
    if (claim.alternative == nullptr) {
      claim.failure = "there is no other way whose cost is known";
      continue;
    }
    try {
      tell(fmt::format("partition {}: {}", place.partition, WayOf(graph, *claim.alternative)));
      CompiledMix after(again, PartitioningOf(graph, claim.alternative), fmt::format("after{}", claims.size()));
      TimeInTurn(before, after, options.seconds, claim);
    } catch (const Error& error) {
      if (error.category() == ErrorCategory::kInternal) throw;
      claim.failure = error.message();
    }
  }
  return claims;
}

Fact VerifyFacts(const Explanation& explanation, const std::vector<VerifiedClaim>& claims) {
  std::vector<Fact> rows;
  int64_t holding = 0, timed = 0;
  for (const VerifiedClaim& claim : claims) {
    rows.push_back(ClaimRow(explanation, claim));
    holding += claim.holds() ? 1 : 0;
    timed += claim.failure.empty() ? 1 : 0;
  }
  return Fact::Report(
      kSchema, {Fact::Table("claims", "claims", std::move(rows))
                    .Columns({{"partition", "{partition}"},
                              {"operators", "{operators:40}"},
                              {"runner-up", "{way}"},
                              {"claimed", "{claimed_seconds}"},
                              {"95 % interval", "{claimed_low_seconds} to {claimed_high_seconds}"},
                              {"measured", "{measured_seconds}"},
                              {"95 % interval", "{measured_low_seconds} to {measured_high_seconds}"},
                              {"", "{verdict}"}}),
                Fact::Line("", {Fact::Count("holding", "holding", holding), Fact::Count("timed", "timed", timed)})
                    .Says("{holding} of {timed} claim{s:timed} held: the measured interval meets the claimed one")});
}

}  // namespace collage
