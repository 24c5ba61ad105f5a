// estimator.cc: the measuring cost estimator.
#include "cost/estimator.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "collage/ir/structural.h"

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

TuningKey MeasuringEstimator::KeyOf(const PartitionRequest& request, const Toolchain& toolchain) const {
  StructuralHashOptions hash;
  hash.constants_by_shape = true;
  const auto version = options_.versions.find(toolchain.name());
  return {StructuralHash(request.function, hash),
          LayoutsText(request.layouts),
          toolchain.name(),
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

TuningRecord MeasuringEstimator::Lookup(const TuningKey& key, const std::string& label,
                                        const std::string& worker_request) {
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  if (std::optional<TuningRecord> record = database_.Find(key)) {
    ++counts_.from_database;
    return known_[key] = *record;
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
  database_.Put(key, record);
  return known_[key] = record;
}

TuningRecord MeasuringEstimator::Estimate(const CostQuery& query) {
  const TuningKey key = KeyOf(query.request, query.toolchain);
  const bool is_new = !known_.contains(key);
  TuningRecord record = Lookup(key, query.toolchain.name() + ": " + query.label, Json{{"job", query.job}}.dump());
  if (is_new && !record.ok && known_.contains(key)) {
    ++counts_.failed;
    auto& [count, example] = failures_[FailureKind(query.toolchain.name(), record.reason)];
    if (count++ == 0) example = query.label + ": " + record.reason;
  }
  return record;
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
