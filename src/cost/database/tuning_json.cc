// tuning_json.cc: lines of JSON, of this version and of version 1.
#include "cost/database/tuning_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "collage/support/error.h"
#include "cost/database/legacy_records.h"
#include "cost/database/record_fields.h"
#include "support/json_reader.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "collage-tuning";
constexpr int kFormatVersion = 2;

Json ToJson(const TuningEntry& entry) {
  return std::visit(
      [](const auto& one) {
        Json json = collage::ToJson(one.second);
        json["key"] = Json::parse(ToText(one.first));
        return json;
      },
      entry);
}

TuningEntry EntryFrom(const Json& json) {
  return std::visit(
      [&]<typename Key>(const Key& key) -> TuningEntry {
        std::conditional_t<std::is_same_v<Key, TuningKey>, TuningRecord, ResultRecord> record;
        FromJson(json, record);
        return std::pair{key, record};
      },
      KeyFromText(json.at("key").dump()));
}

LegacyRecord LegacyRecordFrom(const Json& json) {
  LegacyRecord old{json.at("workload"),
                   json.at("layouts"),
                   json.at("toolchain"),
                   json.at("version"),
                   json.at("machine"),
                   json.at("threads"),
                   {}};
  TuningRecord& record = old.record;
  record.ok = json.at("ok");
  record.label = json.at("label");
  record.measured_at = json.at("measured_at");
  if (!record.ok) {
    record.reason = json.at("reason");
    return old;
  }
  record.minimum = json.at("min_seconds");
  record.p50 = json.at("p50_seconds");
  record.p90 = json.at("p90_seconds");
  for (const auto& [name, number] : {std::pair{"p10_seconds", &record.p10},
                                     {"p25_seconds", &record.p25},
                                     {"p75_seconds", &record.p75},
                                     {"p99_seconds", &record.p99},
                                     {"half_width_seconds", &record.half_width},
                                     {"drift", &record.drift}}) {
    *number = json.value(name, 0.0);
  }
  record.num_samples = json.at("samples");
  record.max_error = json.at("max_error");
  record.schedule = json.value("schedule", "");
  return old;
}

/// The version that a file's first line states.
int ReadHeader(std::istream& in, const std::string& source) {
  std::string line;
  std::getline(in, line);
  const Json header = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool is_ours = header.is_object() && header.contains("format") && header.at("format") == kFormat &&
                       header.contains("version") && header.at("version").is_number_integer();
  const int version = is_ours ? header.at("version").get<int>() : 0;
  if (version < 1 || version > kFormatVersion) {
    throw Error(ErrorCategory::kInput,
                fmt::format("expected a first line with format '{}', version 1 to {}", kFormat, kFormatVersion), source,
                version > kFormatVersion ? "use a newer Collage" : "");
  }
  return version;
}

/// Returns what `read` returns; its errors name `line`.
template <typename Read>
Result<TuningEntry> Located(const std::string& line, const Read& read) {
  std::string why;
  try {
    return read();
  } catch (const Json::exception& error) {
    why = ProblemOf(error);
  } catch (const Error& error) {
    why = error.message();
  }
  throw Error(ErrorCategory::kInput, "no record: " + why, line);
}

}  // namespace

int64_t ExportRecords(TuningDatabase& database, std::ostream& out) {
  int64_t written = 0;
  out << Json{{"format", kFormat}, {"version", kFormatVersion}}.dump() << '\n';
  database.ForEach([&](const TuningEntry& entry) {
    out << ToJson(entry).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    ++written;
  });
  out.flush();
  if (!out) throw Error(ErrorCategory::kResource, "cannot write all records");
  return written;
}

ImportCounts ImportRecords(TuningDatabase& database, std::istream& in, const std::string& source) {
  const int version = ReadHeader(in, source);
  ImportCounts counts;
  LegacyTranslator translator;
  std::string line;
  for (int64_t number = 2; std::getline(in, line); ++number) {
    const Result<TuningEntry> entry = Located(fmt::format("{}:{}", source, number), [&] {
      const Json json = Json::parse(line);
      return version == 1 ? translator.Translate(LegacyRecordFrom(json)) : Result<TuningEntry>(EntryFrom(json));
    });
    ++counts.read;
    if (!entry.ok()) {
      ++counts.dropped[entry.reason().text];
      continue;
    }
    counts.taken += database.PutIfNewer(*entry) ? 1 : 0;
  }
  return counts;
}

ImportCounts MergeRecords(TuningDatabase& into, TuningDatabase& from) {
  ImportCounts counts;
  from.ForEach([&](const TuningEntry& entry) {
    ++counts.read;
    counts.taken += into.PutIfNewer(entry) ? 1 : 0;
  });
  return counts;
}

}  // namespace collage
