// processors.cc: affinity mask and control groups, version 2 (Linux: Documentation/admin-guide/cgroup-v2, "cpu.max").
#include "runtime/threads/processors.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

#include "collage/runtime/thread_pool.h"

namespace collage {
namespace {

/// The group of this process, from the line "0::/path"; the root's when there is none.
std::string GroupOfThisProcess() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "/";
}

int AllowedProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // more processors than the set can hold
}

}  // namespace

int QuotaProcessors(std::string_view cpu_max) {
  std::istringstream text{std::string(cpu_max)};
  double quota = 0;
  double period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return kUnlimitedProcessors;
  return static_cast<int>(std::clamp(quota / period + 0.5, 1.0, static_cast<double>(kUnlimitedProcessors)));
}

int CgroupProcessors(const std::filesystem::path& root, std::string_view group) {
  int processors = kUnlimitedProcessors;
  std::filesystem::path folder = root;
  const auto consider = [&] {
    std::ifstream file(folder / "cpu.max");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    processors = std::min(processors, QuotaProcessors(text));
  };
  consider();
  for (const auto& part : std::filesystem::path(group).relative_path()) {
    folder /= part;
    consider();
  }
  return processors;
}

int AvailableProcessors() {
  return std::max(1, std::min(AllowedProcessors(), CgroupProcessors("/sys/fs/cgroup", GroupOfThisProcess())));
}

}  // namespace collage
