// leak_check.cc: see leak_check.h.
#include "cost/measure/leak_check.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
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

constexpr auto kFirstLook = milliseconds(1);
constexpr auto kGrace = milliseconds(10);
constexpr int kLooks = 10;
constexpr auto kBetweenLooks = milliseconds(1);

double Growth(const MemoryInUse& from, const MemoryInUse& to) {
  return static_cast<double>(std::max(to.allocated - from.allocated, to.mapped - from.mapped));
}

/// Threads but the calling one that run or would run if a processor were free: whether they get one does not matter, so
/// that a loaded machine hides none.
std::set<pid_t> RunnableThreads() {
  std::set<pid_t> threads;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", failure)) {
    const std::string name = entry.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread == self || thread == 0) continue;
    std::string stat;
    std::getline(std::ifstream(entry.path() / "stat"), stat);
    // id (name) state …; the name may hold anything, so what counts comes after the last parenthesis.
    const size_t after = stat.rfind(')');
    if (after != std::string::npos && stat.compare(after, 3, ") R") == 0) threads.insert(thread);
  }
  return threads;
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

bool HasThreadsBeyondPool() { return NumThreadsOfProcess() > NumThreads(); }

std::string FindBusyThreads(const std::function<void()>& run) {
  if (!HasThreadsBeyondPool()) return "";
  run();
  std::this_thread::sleep_for(kFirstLook);
  if (RunnableThreads().empty()) return "";
  std::this_thread::sleep_for(kGrace);
  std::map<pid_t, int> seen;
  for (int look = 0; look < kLooks; ++look) {
    std::this_thread::sleep_for(kBetweenLooks);
    for (const pid_t thread : RunnableThreads()) ++seen[thread];
  }
  const auto busy = std::count_if(seen.begin(), seen.end(), [](const auto& one) { return one.second >= kLooks - 1; });
  if (busy == 0) return "";
  const std::chrono::milliseconds after = kGrace + kLooks * kBetweenLooks;
  return fmt::format("its threads go on running after a run ({} of them, {} ms later still)", busy, after.count());
}

}  // namespace collage
