// units.cc: numbers as text, with units.
#include "report/units.h"

#include <fmt/format.h>

#include <cmath>

namespace collage {

std::string FormatSeconds(double seconds) {
  const double us = seconds * 1e6;
  if (us < 1) return fmt::format("{:.3f} us", us);
  if (us < 1e3) return fmt::format("{:.{}f} us", us, us < 10 ? 2 : us < 100 ? 1 : 0);
  const double ms = us / 1e3;
  if (ms < 1e4) return fmt::format("{:.{}f} ms", ms, ms < 10 ? 3 : ms < 100 ? 2 : 1);
  return fmt::format("{:.1f} s", seconds);
}

std::string FormatDifference(double seconds) {
  if (seconds == 0) return "0";
  return (seconds < 0 ? "-" : "+") + FormatSeconds(std::abs(seconds));
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

}  // namespace collage
