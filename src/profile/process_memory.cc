// process_memory.cc: what Linux writes in /proc/self/status.
#include "profile/process_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace collage {
namespace {

/// The number of a line such as "VmHWM:     5120 kB", in bytes.
std::optional<int64_t> StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(name + ":")) continue;
    return std::strtoll(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> PeakBytes() { return StatusBytes("VmHWM"); }
std::optional<int64_t> ResidentBytes() { return StatusBytes("VmRSS"); }

}  // namespace collage
