// counters.cc: groups of counters, one for each thread.
#include "profile/counters.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

namespace collage {
namespace {

struct HardwareCounter {
  const char* name;
  uint64_t config;
};

constexpr std::array kHardware{HardwareCounter{"cycles", PERF_COUNT_HW_CPU_CYCLES},
                               HardwareCounter{"instructions", PERF_COUNT_HW_INSTRUCTIONS},
                               HardwareCounter{"cache_misses", PERF_COUNT_HW_CACHE_MISSES},
                               HardwareCounter{"branch_misses", PERF_COUNT_HW_BRANCH_MISSES}};
constexpr size_t kPageFaults = kHardware.size();  // row
constexpr size_t kSwitches = kPageFaults + 1;     // row
constexpr size_t kProcessorTime = kSwitches + 1;  // row

/// Opens a counter of thread `thread` of what its own code does; -1 with errno where the system refuses.
int Open(uint64_t config, int thread, int leader) {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = config;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, leader, PERF_FLAG_FD_CLOEXEC));
}

std::vector<int> Threads() {
  std::vector<int> threads;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    threads.push_back(std::atoi(entry.path().filename().c_str()));
  }
  // The calling thread comes first: it tells which counters there are.
  const auto self = static_cast<int>(syscall(SYS_gettid));
  std::ranges::sort(threads, {}, [self](int thread) { return std::pair(thread != self, thread); });
  return threads;
}

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string WhyNoCounter(int error, std::string_view paranoid) {
  switch (error) {
    case EACCES:
    case EPERM:
      return fmt::format(
          "not permitted{}; `sysctl kernel.perf_event_paranoid=2`, CAP_PERFMON or the container's seccomp "
          "profile allows it",
          paranoid.empty() ? "" : fmt::format(": kernel.perf_event_paranoid is {}", paranoid));
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP: return "the processor, or the virtual machine, has no such counter";
    case ENOSYS: return "this system has no perf_event_open";
    case EMFILE: return "too many open files";
    default: return fmt::format("perf_event_open: {}", std::strerror(error));
  }
}

Counters::Counters() {
  const std::string paranoid = FirstLine("/proc/sys/kernel/perf_event_paranoid");
  for (const int thread : Threads()) {
    const bool is_first = rows_.empty();
    Group group;
    for (size_t i = 0; i < kHardware.size(); ++i) {
      if (!is_first && std::ranges::find(hardware_, i) == hardware_.end()) continue;
      const int file = Open(kHardware[i].config, thread, group.leader);
      const std::string reason = file >= 0 ? "" : WhyNoCounter(errno, paranoid);
      if (is_first && file >= 0) hardware_.push_back(i);
      if (is_first) rows_.push_back({kHardware[i].name, reason});
      if (file < 0) continue;
      if (group.leader < 0) group.leader = file;
      group.members.push_back(file);
    }
    groups_.push_back(std::move(group));
    if (hardware_.empty()) break;
  }
  rows_.push_back({"page_faults", ""});
  rows_.push_back({"context_switches", ""});
  rows_.push_back({"cpu_seconds", ""});
}

Counters::~Counters() {
  for (const Group& group : groups_) {
    for (const int file : group.members) close(file);
  }
}

void Counters::Read(std::span<double> counts) const {
  std::ranges::fill(counts, 0);
  for (const Group& group : groups_) {
    if (group.members.size() != hardware_.size() || group.leader < 0) continue;
    struct {
      uint64_t number, enabled, running;
      std::array<uint64_t, kHardware.size()> values;
    } read_values{};
    if (read(group.leader, &read_values, sizeof read_values) <= 0 || read_values.running == 0) continue;
    // Counters that take turns were there for a part of the time.
    const double scale = static_cast<double>(read_values.enabled) / static_cast<double>(read_values.running);
    for (size_t i = 0; i < hardware_.size(); ++i) {
      counts[hardware_[i]] += static_cast<double>(read_values.values[i]) * scale;
    }
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  counts[kPageFaults] = static_cast<double>(usage.ru_minflt + usage.ru_majflt);
  counts[kSwitches] = static_cast<double>(usage.ru_nivcsw + usage.ru_nvcsw);
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  counts[kProcessorTime] = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace collage
