// estimator.cc: the measuring cost estimator.
#include "cost/estimator.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>

#include "collage/runtime/thread_pool.h"
#include "cost/smallest_call.h"

namespace collage {
namespace {

using Json = nlohmann::json;

// Bumped when the way of measuring changes so that old timings no longer compare with new ones.
constexpr int kMethodVersion = 3;

std::string RecordToText(const TuningRecord& record) {
  return Json{{"ok", record.ok},        {"minimum", record.minimum},         {"p50", record.p50},
              {"p90", record.p90},      {"num_samples", record.num_samples}, {"max_error", record.max_error},
              {"reason", record.reason}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

TuningRecord RecordFromText(const std::string& text) {
  const Json json = Json::parse(text);
  TuningRecord record;
  record.ok = json.at("ok");
  record.minimum = json.at("minimum");
  record.p50 = json.at("p50");
  record.p90 = json.at("p90");
  record.num_samples = json.at("num_samples");
  record.max_error = json.at("max_error");
  record.reason = json.at("reason");
  return record;
}

Layout LayoutFromText(const std::string& text) {
  return text == ToString(Layout::kChannelsLast) ? Layout::kChannelsLast : Layout::kPlain;
}

/// "crashed with signal 11", "wrong result", "declined: …" up to its first detail: what failures are counted by.
std::string FailureKind(const std::string& toolchain, const std::string& reason) {
  return toolchain + ": " + reason.substr(0, reason.find_first_of(",(:", 9));
}

/// Seconds per product or byte.
TuningRecord MeasureRate(const std::string& name, int num_threads) {
  SetNumThreads(num_threads);
  const double rate = name == "multiply_adds" ? MeasureMultiplyAddRate() : MeasureReadRate(CacheLevelFromString(name));
  TuningRecord record;
  record.ok = true;
  record.minimum = record.p50 = record.p90 = 1 / rate;
  record.num_samples = 1;
  return record;
}

}  // namespace

std::string LayoutsText(const BoundaryLayouts& layouts) {
  std::string text;
  for (Layout layout : layouts.inputs) text += layout == Layout::kPlain ? 'p' : 'c';
  text += ':';
  for (Layout layout : layouts.outputs) text += layout == Layout::kPlain ? 'p' : 'c';
  return text;
}

MeasuringEstimator::MeasuringEstimator(TuningDatabase& database, FindPartition find, Options options,
                                       OnMeasure on_measure)
    : database_(database),
      find_(std::move(find)),
      options_(std::move(options)),
      on_measure_(std::move(on_measure)),
      worker_([this](const std::string& request, const SendProgress&) { return Answer(request); }, options_.limits) {}

/// In the worker.
std::string MeasuringEstimator::Answer(const std::string& request) {
  const Json json = Json::parse(request);
  if (json.contains("job")) {
    const auto [partition, toolchain] = find_(json.at("job").get<int64_t>());
    return RecordToText(MeasurePartition(*toolchain, partition, options_.timing));
  }
  if (json.contains("smallest_call_like")) {
    const auto [_, toolchain] = find_(json.at("smallest_call_like").get<int64_t>());
    return RecordToText(MeasureSmallestCall(*toolchain, options_.num_threads, options_.timing));
  }
  if (json.contains("rate")) return RecordToText(MeasureRate(json.at("rate").get<std::string>(), options_.num_threads));
  const Samples samples =
      MeasureConversion(json.at("shape").get<Shape>(), DataType::FromString(json.at("dtype").get<std::string>()),
                        LayoutFromText(json.at("from")), LayoutFromText(json.at("to")), options_.num_threads);
  TuningRecord record;
  record.ok = true;
  record.minimum = samples.minimum();
  record.p50 = samples.p50();
  record.p90 = samples.p90();
  record.num_samples = static_cast<int64_t>(samples.size());
  return RecordToText(record);
}

TuningKey MeasuringEstimator::KeyOf(const CostQuery& query) const {
  const std::string& name = query.toolchain.name();
  const auto version = options_.versions.find(name);
  return {query.workload,
          LayoutsText(query.layouts),
          name,
          fmt::format("{}/m{}.{}", version == options_.versions.end() ? "" : version->second, kMethodVersion,
                      static_cast<int>(options_.timing.operands)),
          options_.machine,
          options_.num_threads};
}

bool MeasuringEstimator::MayMeasure() const {
  if (options_.budget_seconds > 0 && spent_seconds_ >= options_.budget_seconds) return false;
  if (options_.max_measurements > 0 && counts_.measured >= options_.max_measurements) return false;
  return !options_.should_stop || !options_.should_stop();
}

const TuningRecord* MeasuringEstimator::Find(const TuningKey& key) {
  const auto [it, is_new] = known_.emplace(key, std::nullopt);
  if (is_new) it->second = database_.Find(key);
  return it->second ? &*it->second : nullptr;
}

TuningRecord MeasuringEstimator::Lookup(const TuningKey& key, const std::string& label,
                                        const std::string& worker_request) {
  if (const TuningRecord* record = Find(key)) {
    if (asked_.insert(key).second) ++counts_.from_database;
    return *record;
  }
  if (!MayMeasure()) {
    ++counts_.skipped;
    TuningRecord record;
    record.is_skipped = true;
    record.reason = "not measured: the budget was spent";
    return record;  // not remembered: a later run with time may measure it
  }
  if (on_measure_) on_measure_(counts_, label);
  const auto started = std::chrono::steady_clock::now();
  const Result<std::string> answer = worker_.Call(worker_request);
  spent_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  TuningRecord record;
  if (answer.ok()) {
    record = RecordFromText(*answer);
  } else {
    record.reason = answer.reason().text;
  }
  record.label = label;
  ++counts_.measured;
  asked_.insert(key);
  database_.Put(key, record);
  known_[key] = record;
  return record;
}

TuningRecord MeasuringEstimator::Estimate(const CostQuery& query) {
  const TuningKey key = KeyOf(query);
  const bool is_new = !asked_.contains(key);
  const double bound = LowerBound(query);
  TuningRecord record = Lookup(key, query.toolchain.name() + ": " + query.label, Json{{"job", query.job}}.dump());
  if (record.ok && record.p50 < bound) {
    // The machine was held up when its rates were measured: they are what a kernel has just shown that they are.
    ++counts_.below_bound;
    rates_ = rates_->Scaled(bound / record.p50);
  }
  if (is_new && !record.ok && asked_.contains(key)) {
    ++counts_.failed;
    auto& [count, example] = failures_[FailureKind(query.toolchain.name(), record.reason)];
    if (count++ == 0) example = query.label + ": " + record.reason;
  }
  return record;
}

double MeasuringEstimator::LowerBound(const CostQuery& query) {
  if (const TuningRecord* record = Find(KeyOf(query))) {
    return record->ok ? record->p50 : std::numeric_limits<double>::infinity();
  }
  return SmallestCall(query) + RooflineSeconds(query.work, Rates(), options_.num_threads, options_.timing.operands);
}

/// What any call of a query's toolchain takes, 0 when it is not known.
double MeasuringEstimator::SmallestCall(const CostQuery& query) {
  const auto [it, is_new] = smallest_calls_.emplace(query.toolchain.name(), 0);
  if (!is_new) return it->second;
  // A call that computes something may find more of its way predicted than one timed alone.
  constexpr double kShare = 0.8;
  const std::string what = "smallest call";
  const TuningKey key = KeyOf({what, {}, {}, query.toolchain, query.job, what});
  const TuningRecord record =
      Lookup(key, query.toolchain.name() + ": " + what, Json{{"smallest_call_like", query.job}}.dump());
  return it->second = record.ok ? record.p50 * kShare : 0;
}

/// Measured once for each kind of machine and number of threads.
const MachineRates& MeasuringEstimator::Rates() {
  if (rates_) return *rates_;
  rates_.emplace();
  const std::pair<const char*, double*> wanted[] = {
      {"multiply_adds", &rates_->multiply_adds},
      {"near", &rates_->bytes[static_cast<size_t>(CacheLevel::kNear)]},
      {"shared", &rates_->bytes[static_cast<size_t>(CacheLevel::kShared)]},
      {"memory", &rates_->bytes[static_cast<size_t>(CacheLevel::kMemory)]},
  };
  for (const auto& [name, rate] : wanted) {
    const std::string what = fmt::format("rate {}", name);
    const TuningKey key{what, "", "host", fmt::format("m{}", kMethodVersion), options_.machine, options_.num_threads};
    const TuningRecord record = Lookup(key, "host: " + what, Json{{"rate", name}}.dump());
    if (record.ok && record.p50 > 0) *rate = 1 / record.p50;
  }
  return *rates_;
}

double MeasuringEstimator::ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) {
  if (from == to) return 0;
  const std::string what = fmt::format("convert {} {}", ToString(shape), dtype.ToString());
  const TuningKey key{what,
                      fmt::format("{}:{}", ToString(from), ToString(to)),
                      "host",
                      fmt::format("m{}", kMethodVersion),
                      options_.machine,
                      options_.num_threads};
  const Json request{{"shape", shape},
                     {"dtype", dtype.ToString()},
                     {"from", std::string(ToString(from))},
                     {"to", std::string(ToString(to))}};
  const TuningRecord record = Lookup(key, "host: " + what, request.dump());
  if (record.ok) return record.p50;
  // Without a measurement: read and write once at 5 GB/s, slower than any machine this runs on.
  constexpr double kSlowBytesPerSecond = 5e9;
  return 2.0 * static_cast<double>(NumElements(shape)) * static_cast<double>(dtype.size_bytes()) / kSlowBytesPerSecond;
}

}  // namespace collage
