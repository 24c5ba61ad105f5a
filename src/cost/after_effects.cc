// after_effects.cc: see after_effects.h.
#include "cost/after_effects.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <thread>

#include "collage/runtime/thread_pool.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int64_t kLeastLeakBytes = 8;  // per run
constexpr int kBatches = 3;
constexpr auto kBatchTime = milliseconds(5);
constexpr int64_t kMostRunsPerBatch = 64;

constexpr auto kWindow = milliseconds(1);
constexpr auto kGrace = milliseconds(10);
constexpr auto kLastWindow = milliseconds(5);
constexpr double kBusyShare = 0.3;  // of one processor, by all other threads together

double Growth(const MemoryInUse& from, const MemoryInUse& to) {
  return static_cast<double>(std::max(to.allocated - from.allocated, to.mapped - from.mapped));
}

/// Seconds of processor time of every thread of this process but the calling one.
std::map<pid_t, double> TimesOfOtherThreads() {
  std::map<pid_t, double> times;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failure)) {
    const std::string name = entry.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread == self || thread == 0) continue;
    // The kernel's clock of a thread's scheduled time, exact also while it runs: clock_getcpuclockid(3) for threads.
    constexpr clockid_t kPerThread = 4;
    constexpr clockid_t kScheduled = 2;
    const clockid_t clock = static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3U) | kPerThread | kScheduled;
    timespec time{};
    if (clock_gettime(clock, &time) != 0) continue;
    times[thread] = static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  return times;
}

struct Activity {
  int threads = 0;     ///< that took a notable share
  double seconds = 0;  ///< of processor time, all threads
  double elapsed = 0;
  bool is_busy() const { return seconds > kBusyShare * elapsed; }
};

/// What other threads do while this one sleeps.
Activity WatchThreads(milliseconds how_long) {
  const auto started = Clock::now();
  const std::map<pid_t, double> before = TimesOfOtherThreads();
  std::this_thread::sleep_for(how_long);
  const std::map<pid_t, double> after = TimesOfOtherThreads();
  Activity activity;
  activity.elapsed = std::chrono::duration<double>(Clock::now() - started).count();
  for (const auto& [thread, time] : after) {
    const auto earlier = before.find(thread);
    const double taken = time - (earlier == before.end() ? 0 : earlier->second);
    activity.seconds += taken;
    activity.threads += taken > 0.05 * activity.elapsed ? 1 : 0;
  }
  return activity;
}

int NumThreadsOfProcess() {
  int count = 0;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failure)) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

}  // namespace

MemoryInUse MemoryInUse::Now() {
  MemoryInUse memory;
  const struct mallinfo2 info = mallinfo2();
  memory.allocated = static_cast<int64_t>(info.uordblks) + static_cast<int64_t>(info.hblkhd);
  // Into memory of this function's own: a stream would allocate.
  char text[64] = {};
  if (std::FILE* statm = std::fopen("/proc/self/statm", "re")) {
    int64_t pages = 0;
    if (std::fgets(text, sizeof text, statm) != nullptr) std::from_chars(text, text + sizeof text, pages);
    memory.mapped = pages * sysconf(_SC_PAGESIZE);
    std::fclose(statm);
  }
  return memory;
}

std::string FindLeak(const MemoryInUse& before, int64_t num_runs, const std::function<void()>& run) {
  const MemoryInUse after = MemoryInUse::Now();
  if (Growth(before, after) < static_cast<double>(kLeastLeakBytes * num_runs)) return "";
  const auto started = Clock::now();
  run();
  const auto taken = std::max<Clock::duration>(Clock::now() - started, std::chrono::microseconds(1));
  const int64_t batch = std::clamp<int64_t>(kBatchTime / taken, 2, kMostRunsPerBatch);
  const MemoryInUse first = MemoryInUse::Now();
  MemoryInUse last = first;
  for (int i = 0; i < kBatches; ++i) {
    for (int64_t j = 0; j < batch; ++j) run();
    const MemoryInUse now = MemoryInUse::Now();
    if (Growth(last, now) < static_cast<double>(kLeastLeakBytes * batch)) return "";
    last = now;
  }
  const double per_run = Growth(first, last) / static_cast<double>(kBatches * batch);
  return fmt::format("leaks memory: {:.3g} kB per run", per_run / 1000);
}

std::string FindBusyThreads(const std::function<void()>& run) {
  if (NumThreadsOfProcess() <= NumThreads()) return "";
  run();
  if (!WatchThreads(kWindow).is_busy()) return "";
  std::this_thread::sleep_for(kGrace);
  const Activity activity = WatchThreads(kLastWindow);
  if (!activity.is_busy()) return "";
  return fmt::format("its threads go on running after a run ({} of them, {:.1f} ms of processor time in {:.1f} ms)",
                     activity.threads, activity.seconds * 1e3, activity.elapsed * 1e3);
}

}  // namespace collage
