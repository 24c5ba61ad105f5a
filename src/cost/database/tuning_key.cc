// tuning_key.cc: the fields of each kind of key, and keys as text.
#include "cost/database/tuning_key.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collage/support/error.h"
#include "support/json_fields.h"
#include "support/json_reader.h"

namespace collage {

using Json = nlohmann::json;

template <typename Self, typename Visitor>
requires IsMessage<Self, PartitionKey>
void VisitFields(Self& key, Visitor& visit) {
  visit.Field("workload", key.workload);
  visit.Field("layouts", key.layouts);
  visit.Field("toolchain", key.toolchain);
  visit.Field("version", key.version);
  visit.Field("method", key.method);
  visit.OptionalField("schedule", key.schedule);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ProbeKey>
void VisitFields(Self& key, Visitor& visit) {
  visit.Field("probe", key.probe);
  visit.Field("toolchain", key.toolchain);
  visit.Field("version", key.version);
  visit.Field("method", key.method);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, SwitchKey>
void VisitFields(Self& key, Visitor& visit) {
  visit.Field("from", key.from);
  visit.Field("from_version", key.from_version);
  visit.Field("toolchain", key.toolchain);
  visit.Field("version", key.version);
  visit.Field("method", key.method);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, RateKey>
void VisitFields(Self& key, Visitor& visit) {
  visit.Field("rate", key.rate);
  visit.Field("method", key.method);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, TransitionKey>
void VisitFields(Self& key, Visitor& visit) { visit.Field("method", key.method); }

template <typename Self, typename Visitor>
requires IsMessage<Self, ConversionKey>
void VisitFields(Self& key, Visitor& visit) {
  visit.Field("shape", key.shape);
  visit.Field("dtype", key.dtype);
  visit.Field("from", key.from);
  visit.Field("to", key.to);
  visit.Field("method", key.method);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, CoverKey>
void VisitFields(Self& key, Visitor& visit) {
  visit.Field("model", key.model);
  visit.Field("partitioning", key.partitioning);
  visit.Field("versions", key.versions);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ScheduleListKey>
void VisitFields(Self& key, Visitor& visit) { visit.Field("near", key.near); }

template <typename Self, typename Visitor>
requires IsMessage<Self, ComparisonKey>
void VisitFields(Self& key, Visitor& visit) { visit.Field("rivals", key.rivals); }

template <typename Self, typename Visitor>
requires IsMessage<Self, PlayOffKey>
void VisitFields(Self& key, Visitor& visit) {
  visit.Field("play_off", key.play_off);
  visit.Field("contender", key.contender);
  visit.Field("name", key.name);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, MachineKey>
void VisitFields(Self& key, Visitor& visit) { visit.Field("name", key.name); }

namespace {

template <typename Key>
std::string Print(const Key& key) {
  Json json = ToJsonWithKind(key.subject);
  json["machine"] = key.machine;
  json["threads"] = key.num_threads;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <typename Key>
bool Read(const Json& json, Key& key) {
  json.at("machine").get_to(key.machine);
  json.at("threads").get_to(key.num_threads);
  return FromJsonOfKind(json.at("kind").get<std::string>(), json, key.subject);
}

template <typename Key>
ToolchainOfKey FindToolchain(const Key& key) {
  return std::visit(
      [](const auto& subject) -> ToolchainOfKey {
        if constexpr (requires { subject.toolchain; }) return {subject.toolchain, subject.version};
        if constexpr (requires { subject.near; }) return {subject.near.toolchain, subject.near.version};
        if constexpr (requires { subject.rivals; }) {
          if (!subject.rivals.empty()) return {subject.rivals.front().toolchain, subject.rivals.front().version};
        }
        return {};
      },
      key.subject);
}

template <typename Key>
std::string FindKind(const Key& key) {
  return std::visit([](const auto& subject) { return subject.kKind; }, key.subject);
}

}  // namespace

std::string ToText(const TuningKey& key) { return Print(key); }
std::string ToText(const ResultKey& key) { return Print(key); }

std::variant<TuningKey, ResultKey> KeyFromText(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (TuningKey key; Read(json, key)) return key;
    if (ResultKey key; Read(json, key)) return key;
    throw Error(ErrorCategory::kInput, fmt::format("'{}' is no kind of key", json.at("kind").get<std::string>()));
  } catch (const Json::exception& error) {
    throw Error(ErrorCategory::kInput, fmt::format("no key of the tuning database: {}", ProblemOf(error)));
  }
}

std::string KindOf(const TuningKey& key) { return FindKind(key); }
std::string KindOf(const ResultKey& key) { return FindKind(key); }

ToolchainOfKey ToolchainOf(const TuningKey& key) { return FindToolchain(key); }
ToolchainOfKey ToolchainOf(const ResultKey& key) { return FindToolchain(key); }

}  // namespace collage
