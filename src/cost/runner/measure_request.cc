// measure_request.cc: requests and answers as JSON.
#include "cost/runner/measure_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "cost/database/record_fields.h"
#include "support/json_reader.h"

namespace collage {

using Json = nlohmann::json;

// How nlohmann::json writes and reads types that are no structs of fields.

static void to_json(Json& json, const Layout& layout) { json = std::string(ToString(layout)); }
static void from_json(const Json& json, Layout& layout) {
  const auto text = json.get<std::string>();
  const std::optional<Layout> named = LayoutNamed(text);
  if (!named) throw Error(ErrorCategory::kInput, fmt::format("'{}' is no layout", text));
  layout = *named;
}

static void to_json(Json& json, const DataType& dtype) { json = dtype.ToString(); }
static void from_json(const Json& json, DataType& dtype) { dtype = DataType::FromString(json.get<std::string>()); }

static void to_json(Json& json, const Function& function) {
  IRModule module;
  module.Set("main", function);
  json = PrintModule(module);
}
static void from_json(const Json& json, Function& function) {
  function = InferTypes(ParseModule(json.get<std::string>(), "partition")).main();
}

template <typename Self, typename Visitor>
requires IsMessage<Self, HeldPartition>
void VisitFields(Self& held, Visitor& visit) {
  visit.Field("module", held.request.function);
  visit.Field("inputs", held.request.layouts.inputs);
  visit.Field("outputs", held.request.layouts.outputs);
  visit.Field("toolchain", held.toolchain);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, CandidateHandle>
void VisitFields(Self& candidate, Visitor& visit) { visit.Field("number", candidate.number); }

template <typename Self, typename Visitor>
requires IsMessage<Self, RequestedPartition>
void VisitFields(Self& partition, Visitor& visit) {
  visit.OptionalField("candidate", partition.candidate);
  visit.OptionalField("held", partition.held);
  visit.OptionalField("schedule", partition.schedule);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, TimePartition> || IsMessage<Self, KeepCompiled> || IsMessage<Self, ListSchedules>
void VisitFields(Self& task, Visitor& visit) { visit.Field("partition", task.partition); }

template <typename Self, typename Visitor>
requires IsMessage<Self, TimeProbe>
void VisitFields(Self& task, Visitor& visit) {
  visit.Field("probe", task.probe);
  visit.Field("toolchain", task.toolchain);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, TimeTransition>
void VisitFields(Self&, Visitor&) {}

template <typename Self, typename Visitor>
requires IsMessage<Self, TimeSwitch>
void VisitFields(Self& task, Visitor& visit) {
  visit.Field("from", task.from);
  visit.Field("to", task.to);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, FindRate>
void VisitFields(Self& task, Visitor& visit) { visit.Field("rate", task.rate); }

template <typename Self, typename Visitor>
requires IsMessage<Self, TimeConversion>
void VisitFields(Self& task, Visitor& visit) {
  visit.Field("shape", task.shape);
  visit.Field("dtype", task.dtype);
  visit.Field("from", task.from);
  visit.Field("to", task.to);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, MeasureContext>
void VisitFields(Self& context, Visitor& visit) {
  visit.Field("threads", context.num_threads);
  visit.Field("operands", context.timing.operands);
  visit.OptionalField("percentile", context.timing.percentile);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, MeasureAnswer>
void VisitFields(Self& answer, Visitor& visit) {
  VisitFields(static_cast<std::conditional_t<std::is_const_v<Self>, const TuningRecord, TuningRecord>&>(answer), visit);
  visit.OptionalField("schedules", answer.schedules);
}

std::string ToText(const MeasureRequest& request) {
  Json json = ToJson(request.context);
  json.update(ToJsonWithKind(request.task));
  return json.dump();
}

MeasureRequest MeasureRequestFromText(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (!json.contains("kind")) throw Error(ErrorCategory::kInput, "no request to measure something: it has no 'kind'");
    MeasureRequest request;
    FromJson(json, request.context);
    const auto kind = json.at("kind").get<std::string>();
    if (!FromJsonOfKind(kind, json, request.task)) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("no request to measure something: '{}' is no kind of request", kind));
    }
    return request;
  } catch (const Json::exception& error) {
    throw Error(ErrorCategory::kInput, fmt::format("no request to measure something: {}", ProblemOf(error)));
  }
}

std::string ToText(const MeasureAnswer& answer) { return ToJsonText(answer); }

MeasureAnswer MeasureAnswerFromText(const std::string& text) {
  try {
    return FromJsonText<MeasureAnswer>(text);
  } catch (const Json::exception& error) {
    throw Error(ErrorCategory::kInput, fmt::format("no record of a measurement: {}", ProblemOf(error)));
  }
}

}  // namespace collage
