// legacy_records.cc: takes apart the texts of which old keys were made.
#include "cost/database/legacy_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cost/database/record_fields.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBy = " by ";
constexpr std::string_view kOr = " or ";
constexpr std::string_view kNear = " near";

/// The rest of `text` behind `prefix`; nothing if it begins otherwise.
std::optional<std::string> Behind(const std::string& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

/// `text` without its first word, which is moved into `word`.
std::string TakeWord(const std::string& text, std::string& word) {
  const size_t end = text.find(' ');
  word = text.substr(0, end);
  return end == std::string::npos ? "" : text.substr(end + 1);
}

/// "VERSION/METHOD" as two; old versions have no method.
std::pair<std::string, std::string> SplitVersion(const std::string& text) {
  const size_t slash = text.rfind("/m");
  const bool has_method = slash != std::string::npos && slash + 2 < text.size() && std::isdigit(text[slash + 2]) != 0;
  if (!has_method) return {text, ""};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

/// `text` as two parts around the first `separator`; the second is empty if there is none.
std::pair<std::string, std::string> SplitAt(const std::string& text, std::string_view separator) {
  const size_t at = text.find(separator);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + separator.size())};
}

Reason Refusal(const char* what) { return {what, "tuning database"}; }

PartitionKey Compiled(PartitionKey partition, const std::string& schedule) {
  partition.schedule = schedule == "default" ? "" : schedule;
  return partition;
}

template <typename Subject>
TuningEntry Timing(const LegacyRecord& old, Subject subject) {
  return std::pair{TuningKey{std::move(subject), old.machine, old.num_threads}, old.record};
}

template <typename Subject>
TuningEntry Other(const LegacyRecord& old, Subject subject, std::string value) {
  return std::pair{ResultKey{std::move(subject), old.machine, old.num_threads},
                   ResultRecord{old.record.ok, std::move(value), old.record.measured_at}};
}

std::string SchedulesOf(const LegacyRecord& old) {
  std::vector<std::string> schedules;
  for (std::string rest = old.record.label; !rest.empty();) {
    std::string line;
    std::tie(line, rest) = SplitAt(rest, "\n");
    schedules.push_back(line);
  }
  return ToJsonText(schedules);
}

Result<TuningEntry> TranslatePlayOff(const LegacyRecord& old) {
  Json fields = Json::parse(old.record.label, nullptr, /*allow_exceptions=*/false);
  if (!fields.is_object()) return Refusal("a play-off's record without its results");
  // Records had these in their own fields.
  const Json own = ToJson(old.record);
  for (const char* name : {"p50", "p90", "minimum", "num_samples", "max_error", "reason"}) fields[name] = own.at(name);
  return Other(old, PlayOffKey{old.layouts, old.workload, old.version}, ToJsonText(fields));
}

Result<TuningEntry> TranslateHost(const LegacyRecord& old) {
  if (const auto rate = Behind(old.workload, "rate ")) return Timing(old, RateKey{*rate, old.version});
  if (old.workload == "empty hop") return Timing(old, TransitionKey{old.version});
  if (const auto value = Behind(old.workload, "convert ")) {
    const size_t dtype = value->rfind(' ');
    const auto [from, to] = SplitAt(old.layouts, ":");
    if (dtype != std::string::npos && !to.empty()) {
      return Timing(old, ConversionKey{value->substr(0, dtype), value->substr(dtype + 1), from, to, old.version});
    }
  }
  return Refusal("a measurement of the host that this version does not know");
}

}  // namespace

/// The version is "m5 TOOLCHAIN VERSION/METHOD[ SCHEDULE] TOOLCHAIN …": where a schedule ends is known because each
/// rival has a record of its own.
Result<ComparisonKey> LegacyTranslator::ReadComparison(const LegacyRecord& old) const {
  ComparisonKey comparison;
  std::string word;
  std::string rest = TakeWord(old.version, word);        // the method
  std::string workloads = TakeWord(old.workload, word);  // "settled"
  while (!workloads.empty()) {
    workloads = TakeWord(workloads, word);
    // The next rival begins with the first known contender; before it may be the schedule of the last one.
    size_t at = std::string::npos;
    const std::pair<const std::string, PartitionKey>* next = nullptr;
    for (const auto& contender : contenders_) {
      const size_t found = fmt::format(" {} ", rest).find(fmt::format(" {} ", contender.first));
      if (found < at) {
        at = found;
        next = &contender;
      }
    }
    if (next == nullptr || (comparison.rivals.empty() && at > 0)) {
      return Refusal("a comparison of partitions that the store does not have");
    }
    if (at > 0) comparison.rivals.back().schedule = rest.substr(0, at - 1);
    PartitionKey& rival = comparison.rivals.emplace_back(next->second);
    rival.workload = word;
    rival.layouts = old.layouts;
    rival.schedule = "";
    rest = rest.substr(std::min(rest.size(), at + next->first.size() + 1));
  }
  if (!rest.empty()) comparison.rivals.back().schedule = rest;
  return comparison;
}

Result<TuningEntry> LegacyTranslator::Translate(const LegacyRecord& old) {
  if (old.toolchain == "play-off") return TranslatePlayOff(old);
  if (old.toolchain == "end to end") return Timing(old, CoverKey{old.workload, old.layouts, old.version});
  if (old.toolchain == "host" && old.workload.starts_with("settled ")) {
    const Result<ComparisonKey> comparison = ReadComparison(old);
    if (!comparison.ok()) return comparison.reason();
    return Other(old, *comparison, "");
  }
  if (old.toolchain == "host") return TranslateHost(old);

  const auto [full_version, schedules] = SplitAt(old.version, kBy);
  const auto [version, method] = SplitVersion(full_version);
  if (old.layouts == ":" && (old.workload == "smallest call" || old.workload.starts_with("probe "))) {
    const std::string probe = Behind(old.workload, "probe ").value_or(old.workload);
    return Timing(old, ProbeKey{probe, old.toolchain, version, method});
  }
  if (const auto from = Behind(old.workload, "handover from ")) {
    std::string name, option;
    std::string rest = TakeWord(*from, name);
    while (rest.starts_with('-')) {
      rest = TakeWord(rest, option);
      name += " " + option;
    }
    return Timing(old, SwitchKey{name, rest, old.toolchain, version, method});
  }
  PartitionKey partition{old.workload, old.layouts, old.toolchain, version, method, std::nullopt};
  contenders_.emplace(old.toolchain + " " + full_version, partition);
  if (full_version == old.version) return Timing(old, std::move(partition));
  if (schedules.ends_with(kNear)) {
    const std::string near = schedules.substr(0, schedules.size() - kNear.size());
    return Other(old, ScheduleListKey{Compiled(std::move(partition), near)}, SchedulesOf(old));
  }
  if (const auto [one, other] = SplitAt(schedules, kOr); !other.empty()) {
    return Other(old, ComparisonKey{{Compiled(partition, one), Compiled(partition, other)}}, "");
  }
  return Timing(old, Compiled(std::move(partition), schedules));
}

}  // namespace collage
