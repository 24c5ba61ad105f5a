// measure_request.cc: requests and answers as JSON.
#include "cost/runner/measure_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/machine/probes.h"
#include "cost/machine/roofline.h"
#include "cost/machine/transition.h"
#include "cost/measure/measure.h"
#include "target/toolchain_configuration.h"
#include "worker/worker.h"

namespace collage {
namespace {

using Json = nlohmann::json;

Json BaseOf(const MeasureContext& context) {
  return {{"threads", context.num_threads},
          {"operands", static_cast<int>(context.timing.operands)},
          {"percentile", context.timing.percentile}};
}

std::string TextOf(Json request, const Json& base) {
  request.update(base);
  return request.dump();
}

Json WithSchedule(Json request, const std::string& schedule) {
  if (!schedule.empty()) request["schedule"] = schedule;
  return request;
}

MeasureContext ContextOf(const Json& request) {
  MeasureContext context;
  context.num_threads = request.at("threads");
  context.timing.operands = static_cast<CacheLevel>(request.at("operands").get<int>());
  context.timing.percentile = request.value("percentile", context.timing.percentile);
  return context;
}

Json LayoutsToJson(const std::vector<Layout>& layouts) {
  Json json = Json::array();
  for (Layout layout : layouts) json.push_back(std::string(ToString(layout)));
  return json;
}

Layout LayoutFromText(const std::string& text) {
  if (const std::optional<Layout> layout = LayoutNamed(text)) return *layout;
  throw Error(ErrorCategory::kInput, fmt::format("'{}' is no layout", text));
}

std::vector<Layout> LayoutsFromJson(const Json& json) {
  std::vector<Layout> layouts;
  for (const Json& text : json) layouts.push_back(LayoutFromText(text));
  return layouts;
}

/// By its name, or a configuration's text.
const Toolchain& ToolchainNamed(const std::string& name) {
  static ConfiguredToolchains toolchains(ToolchainRegistry::Global());  // this process's; calls are one at a time
  const Toolchain* toolchain = toolchains.Find(name);
  if (toolchain == nullptr) throw Error(ErrorCategory::kUnavailable, fmt::format("there is no toolchain '{}'", name));
  return *toolchain;
}

/// Toolchains that one cannot be in a process with never meet here: a measurement that would bring them together is
/// made in another worker.
void KeepApart(const Toolchain& wanted) {
  static std::set<std::string> used;  // by this process; calls are one at a time
  const std::string wanted_name = RegisteredName(wanted.name());
  for (const std::string& name : used) {
    const Toolchain* other = ToolchainRegistry::Global().Find(name);
    if (other == nullptr || name == wanted_name) continue;
    if (const std::optional<std::string> why = WhyIncompatible(wanted, *other)) {
      AskForFreshWorker();
      throw Error(ErrorCategory::kUnavailable,
                  fmt::format("'{}' cannot share a process with '{}': {}", wanted.name(), name, *why));
    }
  }
  used.insert(wanted_name);
}

PartitionRequest PartitionFromJson(const Json& json, int num_threads) {
  const IRModule module = InferTypes(ParseModule(json.at("module").get<std::string>(), "partition"));
  return {module.main(), {LayoutsFromJson(json.at("inputs")), LayoutsFromJson(json.at("outputs"))}, num_threads};
}

/// A record's quantiles by name.
template <typename Record>
auto TimesOf(Record& record) {
  return std::array{std::pair{"minimum", &record.minimum}, std::pair{"p10", &record.p10}, std::pair{"p25", &record.p25},
                    std::pair{"p50", &record.p50},         std::pair{"p75", &record.p75}, std::pair{"p90", &record.p90},
                    std::pair{"p99", &record.p99}};
}

TuningRecord MeasureRate(const std::string& name) {
  const double rate = name == "multiply_adds" ? MeasureMultiplyAddRate() : MeasureReadRate(CacheLevelFromString(name));
  TuningRecord record;
  record.ok = true;
  record.minimum = record.p50 = record.p90 = 1 / rate;
  record.num_samples = 1;
  return record;
}

TuningRecord ListSchedules(const Toolchain& toolchain, const PartitionRequest& partition) {
  TuningRecord record;
  const Result<std::vector<std::string>> listed = toolchain.Schedules(partition);
  record.ok = listed.ok();
  if (!listed.ok()) {
    record.reason = listed.reason().text;
    return record;
  }
  for (const std::string& schedule : *listed) record.label += (record.label.empty() ? "" : "\n") + schedule;
  return record;
}

TuningRecord MeasureOrList(const Toolchain& toolchain, PartitionRequest partition, const Json& request,
                           const TimingOptions& timing) {
  partition.schedule = request.value("schedule", "");
  if (request.value("lists_schedules", false)) return ListSchedules(toolchain, partition);
  return MeasurePartition(toolchain, partition, timing);
}

TuningRecord Measure(const Json& request, const FindPartition& find) {
  const MeasureContext context = ContextOf(request);
  SetNumThreads(context.num_threads);
  if (request.contains("job")) {
    const auto [partition, toolchain] = find(request.at("job").get<int64_t>());
    KeepApart(*toolchain);
    return MeasureOrList(*toolchain, partition, request, context.timing);
  }
  for (const char* name : {"toolchain", "handover_from", "handover_to"}) {
    if (request.contains(name)) KeepApart(ToolchainNamed(request.at(name)));
  }
  if (request.contains("partition")) {
    return MeasureOrList(ToolchainNamed(request.at("toolchain")),
                         PartitionFromJson(request.at("partition"), context.num_threads), request, context.timing);
  }
  if (request.contains("probe")) {
    return MeasureProbe(ToolchainNamed(request.at("toolchain")), ProbeNamed(request.at("probe")), context.num_threads,
                        context.timing);
  }
  if (request.contains("empty_hop")) return MeasureEmptyHop(context.timing);
  if (request.contains("handover_from")) {
    return MeasureHandover(ToolchainNamed(request.at("handover_from")), ToolchainNamed(request.at("handover_to")),
                           context.num_threads, context.timing);
  }
  if (request.contains("rate")) return MeasureRate(request.at("rate"));
  return RecordOf(
      MeasureConversion(request.at("shape").get<Shape>(), DataType::FromString(request.at("dtype").get<std::string>()),
                        LayoutFromText(request.at("from")), LayoutFromText(request.at("to")), context.num_threads),
      {});
}

}  // namespace

std::string PartitionRequestText(int64_t job, const MeasureContext& context, const std::string& schedule) {
  return TextOf(WithSchedule({{"job", job}}, schedule), BaseOf(context));
}

std::string PartitionRequestText(const PartitionRequest& partition, const Toolchain& toolchain,
                                 const MeasureContext& context) {
  IRModule module;
  module.Set("main", partition.function);
  const Json held{{"module", PrintModule(module)},
                  {"inputs", LayoutsToJson(partition.layouts.inputs)},
                  {"outputs", LayoutsToJson(partition.layouts.outputs)}};
  return TextOf(WithSchedule({{"partition", held}, {"toolchain", toolchain.name()}}, partition.schedule),
                BaseOf(context));
}

std::string ScheduleListRequestText(const std::string& partition) {
  Json request = Json::parse(partition);
  request["lists_schedules"] = true;
  return request.dump();
}

std::string ProbeRequestText(const std::string& probe, const Toolchain& toolchain, const MeasureContext& context) {
  return TextOf({{"probe", probe}, {"toolchain", toolchain.name()}}, BaseOf(context));
}

std::string EmptyHopRequestText(const MeasureContext& context) {
  return TextOf({{"empty_hop", true}}, BaseOf(context));
}

std::string HandoverRequestText(const Toolchain& from, const Toolchain& to, const MeasureContext& context) {
  return TextOf({{"handover_from", from.name()}, {"handover_to", to.name()}}, BaseOf(context));
}

std::string RateRequestText(const std::string& name, const MeasureContext& context) {
  return TextOf({{"rate", name}}, BaseOf(context));
}

std::string ConversionRequestText(const Shape& shape, DataType dtype, Layout from, Layout to,
                                  const MeasureContext& context) {
  return TextOf({{"shape", shape},
                 {"dtype", dtype.ToString()},
                 {"from", std::string(ToString(from))},
                 {"to", std::string(ToString(to))}},
                BaseOf(context));
}

std::string AnswerMeasureRequest(const std::string& request, const FindPartition& find) {
  Json json;
  try {
    json = Json::parse(request);
    return RecordToText(Measure(json, find));
  } catch (const Json::exception& error) {
    throw Error(ErrorCategory::kInput, fmt::format("no request to measure something: {}", error.what()));
  }
}

std::string RecordToText(const TuningRecord& record) {
  Json json{{"ok", record.ok},
            {"num_samples", record.num_samples},
            {"max_error", std::min(record.max_error, std::numeric_limits<double>::max())},  // JSON has no infinity
            {"half_width", record.half_width},
            {"drift", record.drift},
            {"reason", record.reason}};
  for (const auto& [name, seconds] : TimesOf(record)) json[name] = *seconds;
  if (!record.label.empty()) json["label"] = record.label;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

TuningRecord RecordFromText(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    TuningRecord record;
    record.ok = json.at("ok");
    // Helpers need not know more than these; the rest is then not known.
    for (const char* name : {"minimum", "p50", "p90"}) static_cast<void>(json.at(name));
    for (const auto& [name, seconds] : TimesOf(record)) *seconds = json.value(name, 0.0);
    record.num_samples = json.at("num_samples");
    record.max_error = json.at("max_error");
    record.half_width = json.value("half_width", 0.0);
    record.drift = json.value("drift", 0.0);
    record.reason = json.at("reason");
    record.label = json.value("label", "");
    return record;
  } catch (const Json::exception& error) {
    throw Error(ErrorCategory::kInput, fmt::format("no record of a measurement: {}", error.what()));
  }
}

}  // namespace collage
