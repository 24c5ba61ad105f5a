#include "cost/database/tuning_json.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "collage/support/error.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "collage-tuning";
constexpr int kFormatVersion = 1;

/// Fields that files of earlier versions do not have, and that are 0 when they are not known.
template <typename Record>
auto LaterFields(Record& record) {
  return std::array{std::pair{"p10_seconds", &record.p10},
                    std::pair{"p25_seconds", &record.p25},
                    std::pair{"p75_seconds", &record.p75},
                    std::pair{"p99_seconds", &record.p99},
                    std::pair{"half_width_seconds", &record.half_width},
                    std::pair{"drift", &record.drift}};
}

Json ToJson(const TuningKey& key, const TuningRecord& record) {
  Json json{{"workload", key.workload}, {"layouts", key.layouts}, {"toolchain", key.toolchain},
            {"version", key.version},   {"machine", key.machine}, {"threads", key.num_threads},
            {"label", record.label},    {"ok", record.ok},        {"measured_at", record.measured_at}};
  if (!record.ok) {
    json["reason"] = record.reason;
    return json;
  }
  json["min_seconds"] = record.minimum;
  json["p50_seconds"] = record.p50;
  json["p90_seconds"] = record.p90;
  for (const auto& [name, number] : LaterFields(record)) {
    if (*number > 0) json[name] = *number;
  }
  json["samples"] = record.num_samples;
  json["max_error"] = record.max_error;
  if (!record.schedule.empty()) json["schedule"] = record.schedule;
  return json;
}

std::pair<TuningKey, TuningRecord> FromJson(const Json& json) {
  TuningKey key{json.at("workload"), json.at("layouts"), json.at("toolchain"),
                json.at("version"),  json.at("machine"), json.at("threads")};
  TuningRecord record;
  record.ok = json.at("ok");
  record.label = json.at("label");
  record.measured_at = json.at("measured_at");
  if (!record.ok) {
    record.reason = json.at("reason");
    return {std::move(key), std::move(record)};
  }
  record.minimum = json.at("min_seconds");
  record.p50 = json.at("p50_seconds");
  record.p90 = json.at("p90_seconds");
  for (const auto& [name, number] : LaterFields(record)) *number = json.value(name, 0.0);
  record.num_samples = json.at("samples");
  record.max_error = json.at("max_error");
  record.schedule = json.value("schedule", "");
  return {std::move(key), std::move(record)};
}

}  // namespace

int64_t ExportRecords(TuningDatabase& database, std::ostream& out) {
  int64_t written = 0;
  out << Json{{"format", kFormat}, {"version", kFormatVersion}}.dump() << '\n';
  database.ForEach([&](const TuningKey& key, const TuningRecord& record) {
    out << ToJson(key, record).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    ++written;
  });
  out.flush();
  if (!out) throw Error(ErrorCategory::kResource, "cannot write all records");
  return written;
}

ImportCounts ImportRecords(TuningDatabase& database, std::istream& in, const std::string& source) {
  std::string line;
  const bool has_header = static_cast<bool>(std::getline(in, line));
  const Json header = has_header ? Json::parse(line, nullptr, /*allow_exceptions=*/false) : Json();
  const auto has = [&](const char* name, const Json& value) {
    return header.is_object() && header.contains(name) && header.at(name) == value;
  };
  if (!has("format", kFormat) || !has("version", kFormatVersion)) {
    throw Error(ErrorCategory::kInput,
                fmt::format("expected a first line with format '{}', version {}", kFormat, kFormatVersion), source);
  }
  ImportCounts counts;
  for (int64_t number = 2; std::getline(in, line); ++number) {
    try {
      const auto [key, record] = FromJson(Json::parse(line));
      ++counts.read;
      counts.taken += database.PutIfNewer(key, record) ? 1 : 0;
    } catch (const Json::exception& error) {
      throw Error(ErrorCategory::kInput, fmt::format("no record: {}", error.what()),
                  fmt::format("{}:{}", source, number));
    }
  }
  return counts;
}

ImportCounts MergeRecords(TuningDatabase& into, TuningDatabase& from) {
  ImportCounts counts;
  from.ForEach([&](const TuningKey& key, const TuningRecord& record) {
    ++counts.read;
    counts.taken += into.PutIfNewer(key, record) ? 1 : 0;
  });
  return counts;
}

}  // namespace collage
