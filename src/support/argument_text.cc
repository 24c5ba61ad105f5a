// argument_text.cc: each parser takes all of its text, or throws an error that quotes it.
#include "support/argument_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "collage/support/error.h"
#include "support/file.h"

namespace collage {
namespace {

struct Unit {
  std::string_view name;
  double size;
};
constexpr std::array kUnits{Unit{"ms", 1e-3}, Unit{"s", 1}, Unit{"m", 60}, Unit{"h", 3600}, Unit{"d", 86400}};
constexpr std::array kByteUnits{Unit{"B", 1},           Unit{"kB", 1e3},       Unit{"MB", 1e6},
                                Unit{"GB", 1e9},        Unit{"KiB", 1024},     Unit{"MiB", 1 << 20},
                                Unit{"GiB", 1LL << 30}, Unit{"TiB", 1LL << 40}};
constexpr size_t kFirstBinaryUnit = 4;
constexpr double kMostBytes = 1LL << 60;
constexpr double kMostSeconds = 100.0 * 365 * 86400;

[[noreturn]] void Fail(const std::string& message, const std::string& hint = "") {
  throw Error(ErrorCategory::kInput, message, "", hint);
}

/// Reads a number from the start of `text` and returns what follows it; false when there is none.
template <typename Number>
bool ReadNumber(std::string_view text, Number* number, std::string_view* rest) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *number);
  *rest = text.substr(static_cast<size_t>(end - text.data()));
  return code == std::errc();
}

/// Reads "NAME=1x3x640" with `separator` between the numbers, or for each -1 an `open` character; nothing where that is
/// malformed.
std::optional<std::pair<std::string, std::vector<int64_t>>> ReadNamed(const std::string& text, char separator,
                                                                      char open = '\0') {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  std::vector<int64_t> numbers;
  std::string_view rest = std::string_view(text).substr(equals + 1);
  while (!rest.empty()) {
    int64_t number = -1;
    if (open != '\0' && rest[0] == open) {
      rest.remove_prefix(1);
    } else if (!ReadNumber(rest, &number, &rest) || number < 0) {
      return std::nullopt;
    }
    numbers.push_back(number);
    if (rest.empty()) break;
    if (rest[0] != separator || rest.size() == 1) return std::nullopt;
    rest.remove_prefix(1);
  }
  return std::pair(text.substr(0, equals), numbers);
}

}  // namespace

int64_t ParseInteger(std::string_view text) {
  int64_t number = 0;
  std::string_view rest;
  if (!ReadNumber(text, &number, &rest) || !rest.empty()) Fail(fmt::format("'{}' is not an integer", text));
  return number;
}

double ParseNumber(std::string_view text) {
  double number = 0;
  std::string_view rest;
  if (!ReadNumber(text, &number, &rest) || !rest.empty()) Fail(fmt::format("'{}' is not a number", text));
  return number;
}

double ParseDuration(std::string_view text) {
  double value = -1;
  std::string_view name;
  if (ReadNumber(text, &value, &name)) {
    if (name.empty()) name = "s";
    for (const Unit& unit : kUnits) {
      if (name == unit.name && value >= 0 && value * unit.size <= kMostSeconds) return value * unit.size;
    }
  }
  Fail(fmt::format("malformed duration '{}'", text), "write 500ms, 90s, 10m, 1h or 90d, at most 100 years");
}

std::string FormatDuration(double seconds) {
  std::string text = fmt::format("{}s", seconds);
  for (const Unit& unit : kUnits) {
    const double value = seconds / unit.size;
    if (value >= 1 && value == std::floor(value)) text = fmt::format("{}{}", value, unit.name);
  }
  return text;
}

int64_t ParseBytes(std::string_view text) {
  double value = -1;
  std::string_view name;
  if (ReadNumber(text, &value, &name)) {
    if (name.empty()) name = "B";
    for (const Unit& unit : kByteUnits) {
      if (name == unit.name && value >= 0 && value * unit.size <= kMostBytes) {
        return static_cast<int64_t>(value * unit.size);
      }
    }
  }
  Fail(fmt::format("malformed number of bytes '{}'", text), "write 500MB, 12GiB or a number of bytes");
}

std::string FormatBinaryBytes(int64_t bytes) {
  std::string text = std::to_string(bytes);
  for (size_t i = kFirstBinaryUnit; i < kByteUnits.size(); ++i) {
    const auto size = static_cast<int64_t>(kByteUnits[i].size);
    if (bytes != 0 && bytes % size == 0) text = fmt::format("{}{}", bytes / size, kByteUnits[i].name);
  }
  return text;
}

std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (comma != 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

std::map<std::string, std::vector<int64_t>> ParseShapes(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& text : texts) {
    const auto named = ReadNamed(text, 'x', '?');
    if (!named)
      Fail(fmt::format("malformed shape '{}'", text),
           "write NAME=1x3x640x640, with ? for a size that stays as it is, or NAME= for a scalar");
    if (!shapes.insert(*named).second) Fail(fmt::format("the shape of '{}' is given twice", named->first));
  }
  return shapes;
}

std::map<std::string, std::vector<int64_t>> ParseSizes(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<int64_t>> sizes;
  for (const std::string& text : texts) {
    const auto named = ReadNamed(text, ',');
    if (!named || named->second.empty()) Fail(fmt::format("malformed sizes '{}'", text), "write NAME=16,128");
    if (!sizes.insert(*named).second) {
      Fail(fmt::format("sizes of '{}' are given twice", named->first), "write them all behind one name: NAME=16,128");
    }
  }
  return sizes;
}

std::map<std::string, std::vector<int64_t>> ParseDimensions(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<int64_t>> dims;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('='), dots = text.find("..", equals == std::string::npos ? 0 : equals);
    const std::string plain = dots == std::string::npos ? text : text.substr(0, dots) + "," + text.substr(dots + 2);
    const auto named = ReadNamed(plain, ',');
    const bool is_comma = text.find(',', equals == std::string::npos ? 0 : equals) != std::string::npos;
    if (!named || is_comma || named->second.size() != (dots == std::string::npos ? 1U : 2U)) {
      Fail(fmt::format("malformed sizes '{}'", text), "write NAME=16, or NAME=1..512 for a range");
    }
    if (!dims.insert(*named).second) Fail(fmt::format("the size of '{}' is given twice", named->first));
  }
  return dims;
}

JsonText ReadJsonArgument(const std::string& argument, const std::string& where) {
  const size_t first = argument.find_first_not_of(" \t\n");
  if (first != std::string::npos && (argument[first] == '{' || argument[first] == '[')) return {argument, where};
  return {ReadFile(argument), argument};
}

}  // namespace collage
