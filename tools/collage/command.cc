// command.cc: arguments and output that the sub-commands share.
#include "command.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "collage/support/error.h"
#include "report/json.h"

namespace collage::cli {
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

void PrintReport(const Fact& report, bool as_json, const TextOptions& options) {
  fmt::print("{}", as_json ? RenderJson(report) + "\n" : RenderText(report, options));
}

}  // namespace collage::cli
