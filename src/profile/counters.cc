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

#include "collage/support/error.h"

namespace collage {
namespace {

constexpr size_t kMostEvents = 16;

/// Opens a counter of thread `thread` of what its own code does; -1 with errno where the system refuses.
int Open(const CounterEvent& event, int thread, int leader) {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
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

std::span<const CounterEvent> HardwareEvents() {
  static constexpr std::array kEvents{CounterEvent{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
                                      CounterEvent{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
                                      CounterEvent{"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
                                      CounterEvent{"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES}};
  return kEvents;
}

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

Counters::Counters(std::span<const CounterEvent> events) {
  COLLAGE_CHECK(events.size() <= kMostEvents) << "too many counters";
  const std::string paranoid = FirstLine("/proc/sys/kernel/perf_event_paranoid");
  for (const int thread : Threads()) {
    const bool is_first = rows_.empty();
    Group group;
    for (size_t i = 0; i < events.size(); ++i) {
      if (!is_first && std::ranges::find(in_group_, i) == in_group_.end()) continue;
      const int file = Open(events[i], thread, group.leader);
      const std::string reason = file >= 0 ? "" : WhyNoCounter(errno, paranoid);
      if (is_first && file >= 0) in_group_.push_back(i);
      if (is_first) rows_.push_back({events[i].name, reason});
      if (file < 0) continue;
      if (group.leader < 0) group.leader = file;
      group.members.push_back(file);
    }
    groups_.push_back(std::move(group));
    if (in_group_.empty()) break;
  }
  first_of_system_ = rows_.size();
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
    if (group.members.size() != in_group_.size() || group.leader < 0) continue;
    struct {
      uint64_t number, enabled, running;
      std::array<uint64_t, kMostEvents> values;
    } read_values{};
    if (read(group.leader, &read_values, sizeof read_values) <= 0 || read_values.running == 0) continue;
    // Counters that take turns were there for a part of the time.
    const double scale = static_cast<double>(read_values.enabled) / static_cast<double>(read_values.running);
    for (size_t i = 0; i < in_group_.size(); ++i) {
      counts[in_group_[i]] += static_cast<double>(read_values.values[i]) * scale;
    }
  }
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  counts[first_of_system_] = static_cast<double>(usage.ru_minflt + usage.ru_majflt);
  counts[first_of_system_ + 1] = static_cast<double>(usage.ru_nivcsw + usage.ru_nvcsw);
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  counts[first_of_system_ + 2] = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace collage
