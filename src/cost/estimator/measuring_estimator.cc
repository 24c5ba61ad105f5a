// measuring_estimator.cc: database first, then the runner.
#include "cost/estimator/measuring_estimator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "cost/estimator/estimators.h"
#include "cost/estimator/tie_break.h"
#include "cost/machine/probes.h"
#include "support/json_fields.h"
#include "target/accuracy.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

// Bumped when the way of measuring changes so that old timings no longer compare with new ones.
constexpr int kMethodVersion = 5;

/// How measurements of the host are made: they do not depend on how candidates are timed.
std::string HostMethod() { return fmt::format("m{}", kMethodVersion); }

/// How calls of toolchains are timed: "m5.2", with a percentile other than the median "m5.2.p90".
std::string MethodText(const TimingOptions& timing) {
  constexpr double kMedian = 0.5;
  const std::string percentile = timing.percentile == kMedian ? "" : fmt::format(".p{:g}", 100 * timing.percentile);
  return fmt::format("{}.{}{}", HostMethod(), static_cast<int>(timing.operands), percentile);
}

/// How kernels of `toolchain` are timed: those of devices by the clocks of these (measure/device_timing.h).
std::string MethodText(const TimingOptions& timing, const Toolchain& toolchain) {
  return MethodText(timing) + (MainMemoryOf(toolchain) == Memory::kHost ? "" : ".d1");
}

/// How partitions are timed. Results that were rounded to integers are compared by a method with a version of its own.
std::string MethodText(const TimingOptions& timing, const Toolchain& toolchain, const Work& work) {
  return MethodText(timing, toolchain) + (work.rounds ? ".r1" : "");
}

// Medians of one candidate differ by so much from one worker to the next.
constexpr double kNoise = 0.02;

std::string LabelOf(const CostQuery& query) { return query.toolchain.name() + ": " + query.label; }

TuningRecord Skipped() {
  TuningRecord record;
  record.is_skipped = true;
  record.reason = "not measured: the budget was spent";
  return record;
}

bool AreAllOk(const std::vector<std::vector<TuningRecord>>& rounds) {
  return std::ranges::all_of(rounds, [](const std::vector<TuningRecord>& round) {
    return std::ranges::all_of(round, [](const TuningRecord& record) { return record.ok; });
  });
}

}  // namespace

MeasuringEstimator::MeasuringEstimator(TuningDatabase& database, std::unique_ptr<Runner> runner,
                                       const CandidateSource& candidates, Options options, OnMeasure on_measure)
    : database_(database),
      runner_(std::move(runner)),
      candidates_(candidates),
      options_(std::move(options)),
      on_measure_(std::move(on_measure)) {}

std::string MeasuringEstimator::VersionOf(const Toolchain& toolchain) const {
  const auto version = options_.versions.find(RegisteredName(toolchain.name()));
  return version == options_.versions.end() ? "" : version->second;
}

TuningKey MeasuringEstimator::Keyed(decltype(TuningKey::subject) subject) const {
  return {std::move(subject), options_.machine, options_.context.num_threads};
}

ResultKey MeasuringEstimator::ResultKeyed(decltype(ResultKey::subject) subject) const {
  return {std::move(subject), options_.machine, options_.context.num_threads};
}

PartitionKey MeasuringEstimator::PartitionOf(const CostQuery& query) const {
  return {query.workload,
          LayoutsText(query.layouts),
          query.toolchain.name(),
          VersionOf(query.toolchain),
          MethodText(options_.context.timing, query.toolchain, query.work),
          std::nullopt};
}

PartitionKey MeasuringEstimator::TrialOf(const CostQuery& query, const std::string& schedule) const {
  PartitionKey trial = PartitionOf(query);
  trial.schedule = schedule;
  return trial;
}

TuningKey MeasuringEstimator::KeyOf(const CostQuery& query) const { return Keyed(PartitionOf(query)); }

bool MeasuringEstimator::MayMeasure() const {
  if (spent_seconds_ >= options_.budget_seconds) return false;
  const int64_t measured = counts_.measured + counts_.remeasured;
  if (options_.max_measurements && measured >= *options_.max_measurements) return false;
  return !IsStopped();
}

void MeasuringEstimator::WithoutPauses(const std::function<void()>& work) {
  std::function<bool()> pauses = std::exchange(options_.pauses, nullptr);
  work();
  options_.pauses = std::move(pauses);
}

bool MeasuringEstimator::IsStopped() const {
  return (options_.should_stop && options_.should_stop()) || (options_.pauses && options_.pauses());
}

const TuningRecord* MeasuringEstimator::Find(const TuningKey& key) {
  const auto [it, is_new] = known_.emplace(key, std::nullopt);
  if (is_new) it->second = database_.Find(key);
  return it->second ? &*it->second : nullptr;
}

void MeasuringEstimator::Ask(const std::vector<MeasureRequest>& requests, const Runner::OnAnswer& on_answer) {
  auto started = Clock::now();
  runner_->Run(requests, [&](size_t index, const MeasureAnswer& answer) {
    const auto now = Clock::now();
    spent_seconds_ += std::chrono::duration<double>(now - started).count();
    started = now;
    return on_answer(index, answer);
  });
}

void MeasuringEstimator::Measure(const std::vector<Question>& questions) {
  std::vector<MeasureRequest> requests;
  for (const Question& question : questions) requests.push_back(question.request);
  if (on_measure_) on_measure_(counts_, questions.front().label);
  Ask(requests, [&](size_t index, const TuningRecord& answer) {
    const Question& question = questions[index];
    TuningRecord record = answer;
    record.label = question.label;
    ++counts_.measured;
    asked_.insert(question.key);
    Remember(question.key, record);
    const bool goes_on = MayMeasure();
    if (goes_on && on_measure_ && index + 1 < questions.size()) on_measure_(counts_, questions[index + 1].label);
    return goes_on;
  });
}

TuningRecord MeasuringEstimator::Lookup(const TuningKey& key, const std::string& label,
                                        const std::optional<MeasureRequest>& request) {
  if (const TuningRecord* record = Find(key)) {
    if (asked_.insert(key).second) ++counts_.from_database;
    return *record;
  }
  if (!request || !MayMeasure()) {
    ++counts_.skipped;
    return Skipped();  // not remembered: a later run with time may measure it
  }
  Measure({{key, label, *request}});
  return *known_.at(key);
}

RequestedPartition MeasuringEstimator::Requested(const CostQuery& query, const std::string& schedule) const {
  if (!runner_->needs_whole_partitions()) return {query.candidate, std::nullopt, schedule};
  const auto [partition, toolchain] = candidates_.Find(query.candidate);
  return {std::nullopt, HeldPartition{partition, toolchain->name()}, schedule};
}

std::string MeasuringEstimator::ScheduleOf(const CostQuery& query) {
  const TuningRecord* known = Find(KeyOf(query));
  return known == nullptr ? "" : known->schedule;
}

void MeasuringEstimator::Remember(const TuningKey& key, const TuningRecord& record) {
  database_.Put(key, record);
  known_[key] = record;
}

TuningRecord MeasuringEstimator::Estimate(const CostQuery& query) { return EstimateAll({query}).front(); }

std::vector<TuningRecord> MeasuringEstimator::EstimateAll(const std::vector<CostQuery>& queries) {
  std::vector<Question> wanted;
  std::set<TuningKey> listed;
  const bool may_measure = MayMeasure();  // requests hold weights: none is made that will not be asked
  for (const CostQuery& query : queries) {
    const TuningKey key = KeyOf(query);
    if (queries.size() == 1 || !may_measure || Find(key) != nullptr || !listed.insert(key).second) continue;
    wanted.push_back({key, LabelOf(query), RequestFor(query)});
  }
  if (wanted.size() > 1 && MayMeasure()) Measure(wanted);
  std::vector<TuningRecord> records;
  for (const CostQuery& query : queries) {
    const TuningKey key = KeyOf(query);
    const bool is_new = !asked_.contains(key) || listed.contains(key);
    listed.erase(key);
    std::optional<MeasureRequest> request;
    if (Find(key) == nullptr && MayMeasure()) request = RequestFor(query);
    const TuningRecord record = Lookup(key, LabelOf(query), request);
    // A toolchain whose kernels all fail is not asked for its smallest call.
    if (const double bound = record.ok ? Bound(query) : 0; bound > 0 && CostOf(record) < bound) {
      // The machine was held up when its rates were measured: they are what a kernel has just shown that they are.
      ++counts_.below_bound;
      rates_ = rates_->Scaled(bound / CostOf(record));
    }
    if (is_new && !record.ok && !record.is_skipped) CountFailure(query, record.reason);
    records.push_back(record);
  }
  return records;
}

ResultKey MeasuringEstimator::TieBreakKey(const std::vector<CostQuery>& rivals) {
  ComparisonKey all;
  for (const CostQuery& rival : rivals) all.rivals.push_back(TrialOf(rival, ScheduleOf(rival)));
  return ResultKeyed(std::move(all));
}

std::vector<std::vector<TuningRecord>> MeasuringEstimator::MeasureInTurn(const std::vector<MeasureRequest>& rivals,
                                                                         const std::function<bool()>& may_go_on) {
  constexpr size_t kRounds = 3;
  std::vector<MeasureRequest> requests;
  for (size_t round = 0; round < kRounds; ++round) requests.insert(requests.end(), rivals.begin(), rivals.end());
  std::vector<std::vector<TuningRecord>> rounds(kRounds, std::vector<TuningRecord>(rivals.size(), Skipped()));
  Ask(requests, [&](size_t index, const TuningRecord& record) {
    rounds[index / rivals.size()][index % rivals.size()] = record;
    ++counts_.remeasured;
    return record.ok && may_go_on();
  });
  return rounds;
}

/// The costs of rivals of which one could not be measured in turn: a failure is its cost from now on, so that nobody
/// measures it again and again.
std::vector<TuningRecord> MeasuringEstimator::WithoutFailed(const std::vector<CostQuery>& rivals,
                                                            const std::vector<std::vector<TuningRecord>>& rounds) {
  std::vector<TuningRecord> records = EstimateAll(rivals);
  for (const std::vector<TuningRecord>& round : rounds) {
    for (size_t i = 0; i < rivals.size(); ++i) {
      if (round[i].ok || round[i].is_skipped) continue;
      records[i] = round[i];
      records[i].label = LabelOf(rivals[i]);
      CountFailure(rivals[i], records[i].reason);
      Remember(KeyOf(rivals[i]), records[i]);
    }
  }
  return records;
}

std::vector<TuningRecord> MeasuringEstimator::BreakTies(const std::vector<CostQuery>& rivals) {
  const ResultKey key = TieBreakKey(rivals);
  if (database_.Find(key) || !MayMeasure()) return EstimateAll(rivals);  // their records hold the outcome
  std::vector<MeasureRequest> requests;
  for (const CostQuery& rival : rivals) requests.push_back(RequestFor(rival));
  if (on_measure_) on_measure_(counts_, "in turn: " + rivals.front().label);
  const std::vector<std::vector<TuningRecord>> rounds = MeasureInTurn(requests, [&] { return MayMeasure(); });
  if (!AreAllOk(rounds)) return WithoutFailed(rivals, rounds);
  std::vector<TuningRecord> settled = BreakTiesOfRounds(rounds, kNoise, options_.context.timing.percentile);
  for (size_t i = 0; i < rivals.size(); ++i) {
    const TuningKey own = KeyOf(rivals[i]);
    settled[i].label = LabelOf(rivals[i]);
    settled[i].schedule = ScheduleOf(rivals[i]);
    Remember(own, settled[i]);
  }
  database_.Put(key, ResultRecord());
  return settled;
}

std::vector<std::string> MeasuringEstimator::SchedulesNear(const CostQuery& query, const std::string& schedule) {
  const ResultKey key = ResultKeyed(ScheduleListKey{TrialOf(query, schedule)});
  if (const std::optional<ResultRecord> known = database_.Find(key)) {
    return FromJsonText<std::vector<std::string>>(known->value);
  }
  MeasureAnswer listed;
  Ask({{options_.context, ListSchedules{Requested(query, schedule)}}}, [&](size_t, const MeasureAnswer& answer) {
    listed = answer;
    return false;
  });
  database_.Put(key, {.ok = listed.ok, .value = ToJsonText(listed.schedules), .measured_at = ""});
  return listed.schedules;
}

std::vector<TuningRecord> MeasuringEstimator::TrySchedules(const CostQuery& query,
                                                           const std::vector<std::string>& schedules,
                                                           const std::function<bool()>& may_go_on) {
  std::vector<TuningRecord> records(schedules.size(), Skipped());
  std::vector<size_t> wanted;
  std::vector<MeasureRequest> requests;
  for (size_t i = 0; i < schedules.size(); ++i) {
    // Its present cost may already be that of a schedule.
    const TuningRecord* known = Find(Keyed(TrialOf(query, schedules[i])));
    if (known == nullptr && schedules[i] == ScheduleOf(query)) known = Find(KeyOf(query));
    if (known != nullptr) {
      ++counts_.known_trials;
      records[i] = *known;
      records[i].schedule = schedules[i];
      trials_[KeyOf(query)].push_back(records[i]);
      continue;
    }
    wanted.push_back(i);
    requests.push_back(RequestFor(query, schedules[i]));
  }
  const auto next = [&](size_t index) {
    if (index >= wanted.size() || !may_go_on()) return false;
    if (on_measure_) on_measure_(counts_, LabelOf(query) + " by " + schedules[wanted[index]]);
    return true;
  };
  if (!next(0)) return records;
  const double spent = spent_seconds_;
  Ask(requests, [&](size_t index, const TuningRecord& answer) {
    TuningRecord& record = records[wanted[index]];
    record = answer;
    record.label = LabelOf(query);
    record.schedule = schedules[wanted[index]];
    ++counts_.trials;
    Remember(Keyed(TrialOf(query, record.schedule)), record);
    trials_[KeyOf(query)].push_back(record);
    return next(index + 1);
  });
  spent_seconds_ = spent;  // trials have a budget of their own
  return records;
}

std::vector<TuningRecord> MeasuringEstimator::TrialsOf(const CostQuery& query) {
  const auto found = trials_.find(KeyOf(query));
  return found == trials_.end() ? std::vector<TuningRecord>() : found->second;
}

TuningRecord MeasuringEstimator::AdoptIfFaster(const CostQuery& query, const std::string& schedule) {
  const TuningKey key = KeyOf(query);
  const TuningRecord before = *Find(key);
  // The key is symmetric in the two schedules.
  const auto [first, second] = std::minmax(schedule, before.schedule);
  const ResultKey decided = ResultKeyed(ComparisonKey{{TrialOf(query, first), TrialOf(query, second)}});
  if (database_.Find(decided)) return before;
  const double spent = spent_seconds_;
  const std::vector<std::vector<TuningRecord>> rounds =
      MeasureInTurn({RequestFor(query, before.schedule), RequestFor(query, schedule)}, [&] { return !IsStopped(); });
  spent_seconds_ = spent;
  if (!AreAllOk(rounds)) return before;
  std::vector<TuningRecord> settled = BreakTiesOfRounds(rounds, kNoise, options_.context.timing.percentile);
  const bool is_faster = CostOf(settled[1]) < CostOf(settled[0]);
  TuningRecord now = settled[is_faster ? 1 : 0];
  now.label = LabelOf(query);
  now.schedule = is_faster ? schedule : before.schedule;
  const TuningKey trial_before = Keyed(TrialOf(query, before.schedule));
  if (is_faster && Find(trial_before) == nullptr) Remember(trial_before, before);
  database_.Put(decided, ResultRecord());
  if (is_faster) Remember(key, now);
  return is_faster ? now : before;
}

double MeasuringEstimator::LowerBound(const CostQuery& query) {
  if (const TuningRecord* record = Find(KeyOf(query))) {
    return record->ok ? CostOf(*record) : std::numeric_limits<double>::infinity();
  }
  return Bound(query);
}

double MeasuringEstimator::LeastOfSchedules(const CostQuery& query) {
  const double known = LowerBound(query);
  return std::isfinite(known) ? std::min(known, Bound(query)) : known;
}

double MeasuringEstimator::Bound(const CostQuery& query) {
  if (MainMemoryOf(query.toolchain) != Memory::kHost) return SmallestCall(query);  // the rates are the processor's
  const MeasureContext& context = options_.context;
  const auto [is_exact, is_new] = is_exact_.emplace(query.toolchain.name(), false);
  if (is_new) is_exact->second = IsExact(query.toolchain);
  Work work = query.work;
  if (is_exact->second) work.spared = 0;
  if (InferencePrecisionOf(query.toolchain)) work = InLowerPrecision(work);
  return SmallestCall(query) + RooflineSeconds(work, Rates(), context.num_threads, context.timing.operands);
}

/// Returns the least time of any call of a query's toolchain, 0 if unknown.
double MeasuringEstimator::SmallestCall(const CostQuery& query) {
  const std::string& name = query.toolchain.name();
  if (const auto known = smallest_calls_.find(name); known != smallest_calls_.end()) return known->second;
  // A call that computes something may find more of its way predicted than one timed alone.
  constexpr double kShare = 0.8;
  const TuningRecord record = Probe(query.toolchain, kSmallestCall);
  const double seconds = record.ok ? CostOf(record) * kShare : 0;
  if (!record.is_skipped) smallest_calls_.emplace(name, seconds);
  return seconds;
}

TuningRecord MeasuringEstimator::Probe(const Toolchain& toolchain, const std::string& probe) {
  const ProbeKey key{probe, toolchain.name(), VersionOf(toolchain), MethodText(options_.context.timing, toolchain)};
  const std::string label = probe == kSmallestCall ? probe : "probe " + probe;
  return Lookup(Keyed(key), toolchain.name() + ": " + label, TimeProbe{probe, toolchain.name()});
}

MachineRates MeasuringEstimator::Rates() {
  if (rates_) return *rates_;
  rates_.emplace();
  are_rates_known_ = true;
  const std::pair<const char*, double*> wanted[] = {
      {"multiply_adds", &rates_->multiply_adds},
      {"near", &rates_->bytes[static_cast<size_t>(CacheLevel::kNear)]},
      {"shared", &rates_->bytes[static_cast<size_t>(CacheLevel::kShared)]},
      {"memory", &rates_->bytes[static_cast<size_t>(CacheLevel::kMemory)]},
  };
  for (const auto& [name, rate] : wanted) {
    const TuningRecord record =
        Lookup(Keyed(RateKey{name, HostMethod()}), fmt::format("host: rate {}", name), FindRate{name});
    if (record.ok && record.p50 > 0) *rate = 1 / record.p50;
    are_rates_known_ = are_rates_known_ && !record.is_skipped;
  }
  return *rates_;
}

void MeasuringEstimator::ForgetSkipped() {
  CostEstimator::ForgetSkipped();
  if (!are_rates_known_) rates_.reset();  // else kernels may have corrected them
}

double MeasuringEstimator::TransitionSeconds() {
  if (transition_seconds_) return *transition_seconds_;
  // A virtual call and its arguments, where there is no time to measure it.
  constexpr double kUsual = 50e-9;
  const TuningRecord record = Lookup(Keyed(TransitionKey{HostMethod()}), "host: transition", TimeTransition{});
  const double seconds = record.ok ? record.p50 : kUsual;
  if (!record.is_skipped) transition_seconds_ = seconds;
  return seconds;
}

double MeasuringEstimator::SwitchSeconds(const Toolchain& from, const Toolchain& to) {
  // Less than this is noise, and is paid in every order.
  constexpr double kNoticed = 100e-9;
  const SwitchKey key{from.name(), VersionOf(from), to.name(), VersionOf(to), MethodText(options_.context.timing)};
  const TuningRecord record =
      Lookup(Keyed(key), fmt::format("{}: switch from {}", to.name(), from.name()), TimeSwitch{from.name(), to.name()});
  return record.ok && record.p50 >= kNoticed ? record.p50 : 0;
}

ConversionKey MeasuringEstimator::ConversionOf(const Shape& shape, DataType dtype, Layout from, Layout to) {
  return {ToString(shape), dtype.ToString(), std::string(ToString(from)), std::string(ToString(to)), HostMethod()};
}

double MeasuringEstimator::ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) {
  if (from == to) return 0;
  const ConversionKey key = ConversionOf(shape, dtype, from, to);
  const TuningRecord record = Lookup(Keyed(key), fmt::format("host: convert {} {}", key.shape, key.dtype),
                                     TimeConversion{shape, dtype, from, to});
  return record.ok ? CostOf(record) : SlowConversionSeconds(shape, dtype);
}

std::unique_ptr<CostEstimator> MakeMeasuringEstimator(EstimatorSetting setting) {
  return std::make_unique<MeasuringEstimator>(setting.database, std::move(setting.runner), setting.candidates,
                                              std::move(setting.options), std::move(setting.on_measure));
}

}  // namespace collage
