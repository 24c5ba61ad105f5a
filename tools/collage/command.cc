// command.cc: arguments and output that the sub-commands share.
#include "command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "collage/support/error.h"

namespace collage::cli {
namespace {

/// Characters that a terminal shows (UTF-8 continuation bytes do not count).
size_t DisplayWidth(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::pair<std::string, Shape> ParseShapeArgument(const std::string& text) {
  const Error malformed(ErrorCategory::kInput, fmt::format("malformed shape '{}'", text), "--shape",
                        "write NAME=1x3x640x640, or NAME= for a scalar");
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) throw malformed;
  Shape shape;
  std::istringstream dims(text.substr(equals + 1));
  for (std::string dim; std::getline(dims, dim, 'x');) {
    int64_t size = 0;
    const auto [end, code] = std::from_chars(dim.data(), dim.data() + dim.size(), size);
    if (code != std::errc() || end != dim.data() + dim.size() || size < 0) throw malformed;
    shape.push_back(size);
  }
  return {text.substr(0, equals), shape};
}

std::map<std::string, Shape> ParseShapeArguments(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> shapes;
  for (const std::string& text : texts) {
    auto [name, shape] = ParseShapeArgument(text);
    if (!shapes.emplace(name, shape).second) {
      throw Error(ErrorCategory::kInput, fmt::format("the shape of '{}' is given twice", name), "--shape");
    }
  }
  return shapes;
}

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

double ParseDuration(const std::string& text) {
  double value = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double scale = unit.empty() || unit == "s" ? 1
                       : unit == "m"               ? 60
                       : unit == "h"               ? 3600
                       : unit == "d"               ? 86400
                                                   : -1;
  constexpr double kMostSeconds = 100.0 * 365 * 86400;
  if (code != std::errc() || scale < 0 || !(value >= 0 && value * scale <= kMostSeconds)) {
    throw Error(ErrorCategory::kInput, fmt::format("malformed duration '{}'", text), "",
                "write 90s, 10m, 1h or 90d, at most 100 years");
  }
  return value * scale;
}

std::string TuningText(const TuningReport& tuning) {
  if (tuning.partitions == 0) return "";
  return fmt::format("{} trials in {}, {:.0f} a minute, {} known · {} of {} partitions faster, by {:.1f} % of all{}",
                     tuning.trials, FormatSeconds(tuning.seconds), tuning.trials_per_minute(), tuning.known_trials,
                     tuning.faster, tuning.partitions, 100 * tuning.gain,
                     tuning.budget_spent ? " · the budget was spent: run again to try more" : "");
}

Json TuningJson(const TuningReport& tuning) {
  return {{"partitions", tuning.partitions},
          {"faster", tuning.faster},
          {"trials", tuning.trials},
          {"known_trials", tuning.known_trials},
          {"seconds", tuning.seconds},
          {"trials_per_minute", tuning.trials_per_minute()},
          {"gain", tuning.gain},
          {"budget_spent", tuning.budget_spent}};
}

std::string FormatSeconds(double seconds) {
  const double us = seconds * 1e6;
  if (us < 1) return fmt::format("{:.3f} us", us);
  if (us < 1e3) return fmt::format("{:.{}f} us", us, us < 10 ? 2 : us < 100 ? 1 : 0);
  const double ms = us / 1e3;
  if (ms < 1e4) return fmt::format("{:.{}f} ms", ms, ms < 10 ? 3 : ms < 100 ? 2 : 1);
  return fmt::format("{:.1f} s", seconds);
}

std::string FormatBytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 3) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, kUnits[unit]);
}

std::string Table::ToText() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(row[i]), ' ');
      const bool starts_with_digit = !row[i].empty() && (std::isdigit(static_cast<unsigned char>(row[i][0])) != 0);
      line += i > 0 && starts_with_digit ? padding + row[i] : row[i] + padding;
      if (i + 1 < row.size()) line += "  ";
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

void PrintJson(const Json& json) { std::puts(json.dump(2, ' ', false, Json::error_handler_t::replace).c_str()); }

}  // namespace collage::cli
