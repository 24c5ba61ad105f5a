// thread_pool.cc: one pool per process: workers that spin for a moment, then sleep.
#include "collage/runtime/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/team.h"

namespace collage {
namespace {

// How long a worker spins for the next region before it sleeps: long enough to bridge the gap between two kernels of one
// inference, short enough not to burn a core that another runtime's pool waits for.
constexpr auto kSpin = std::chrono::microseconds(30);

constexpr uint32_t kSizeBits = 8;
constexpr uint32_t kSizeMask = (1u << kSizeBits) - 1;

thread_local bool in_region = false;
thread_local int team_index = 0;
thread_local int team_size = 1;

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void Pause() { __builtin_ia32_pause(); }

/// Workers of this process. The caller of a region is thread 0; workers 1..n-1 run the same function.
class Pool {
 public:
  static Pool& Get() {
    static std::mutex mutex;
    static Pool* pool = nullptr;
    static pid_t owner = 0;
    if (owner == getpid()) return *pool;
    const std::lock_guard lock(mutex);
    if (owner != getpid()) {
      pool = new Pool;  // never freed: its threads live as long as the process; a forked child makes its own
      owner = getpid();
    }
    return *pool;
  }

  void Run(int num_threads, TeamFunction function, void* context) {
    const std::lock_guard lock(region_);  // one region at a time
    Grow(num_threads - 1);
    function_ = function;
    context_ = context;
    size_ = num_threads;
    running_.store(num_threads - 1, std::memory_order_relaxed);
    const uint32_t count = (generation_.load(std::memory_order_relaxed) >> kSizeBits) + 1;
    generation_.store((count << kSizeBits) | static_cast<uint32_t>(num_threads), std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) FutexWake(generation_);
    RunAs(0);
    while (running_.load(std::memory_order_acquire) > 0) Pause();
  }

  void Barrier() {
    const uint32_t phase = barrier_phase_.load(std::memory_order_acquire);
    if (barrier_count_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      barrier_count_.store(0, std::memory_order_relaxed);
      barrier_phase_.fetch_add(1, std::memory_order_release);
      return;
    }
    while (barrier_phase_.load(std::memory_order_acquire) == phase) Pause();
  }

 private:
  void RunAs(int index) {
    in_region = true;
    team_index = index;
    team_size = size_;
    function_(context_, index, size_);
    in_region = false;
    team_index = 0;
    team_size = 1;
  }

  void Grow(int workers) {
    while (static_cast<int>(threads_.size()) < workers) {
      const int index = static_cast<int>(threads_.size()) + 1;
      threads_.emplace_back([this, index, seen = generation_.load()] { Work(index, seen); });
      threads_.back().detach();
    }
  }

  void Work(int index, uint32_t seen) {
    for (;;) {
      AwaitChange(seen);
      seen = generation_.load(std::memory_order_acquire);
      // The team's size is read from the same word as the region's number: what a worker that is not in the team reads
      // of a later region cannot be mixed up with it.
      if (index >= static_cast<int>(seen & kSizeMask)) continue;
      RunAs(index);
      running_.fetch_sub(1, std::memory_order_release);
    }
  }

  void AwaitChange(uint32_t seen) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    for (;;) {
      for (int i = 0; i < 64; ++i) {
        if (generation_.load(std::memory_order_acquire) != seen) return;
        Pause();
      }
      if (std::chrono::steady_clock::now() > until) break;
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (generation_.load(std::memory_order_seq_cst) == seen) FutexWait(generation_, seen);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  std::mutex region_;
  std::vector<std::thread> threads_;
  TeamFunction function_ = nullptr;
  void* context_ = nullptr;
  int size_ = 1;
  std::atomic<uint32_t> generation_{0};  ///< number of the region, and in the low bits its team's size
  std::atomic<int> running_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<int> barrier_count_{0};
  std::atomic<uint32_t> barrier_phase_{0};
};

std::atomic<int> num_threads_setting{0};

/// Processors granted by the cgroup's CPU quota, or a large number.
int CgroupProcessors() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 20;
  return std::max(1, static_cast<int>(std::stod(quota) / period + 0.5));
}

}  // namespace

int AvailableProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(allowed, CgroupProcessors()));
}

void SetNumThreads(int num_threads) { num_threads_setting = std::clamp(num_threads, 1, 255); }

int NumThreads() {
  const int set = num_threads_setting.load(std::memory_order_relaxed);
  return set > 0 ? set : AvailableProcessors();
}

void RunTeam(int num_threads, TeamFunction function, void* context) {
  if (num_threads <= 1 || in_region) {
    const bool outer = in_region;
    const int index = team_index;
    const int size = team_size;
    in_region = true;
    team_index = 0;
    team_size = 1;
    function(context, 0, 1);
    in_region = outer;
    team_index = index;
    team_size = size;
    return;
  }
  Pool::Get().Run(num_threads, function, context);
}

void TeamBarrier() {
  if (team_size > 1) Pool::Get().Barrier();
}

int TeamIndex() { return team_index; }
int TeamSize() { return team_size; }
bool InTeam() { return in_region; }

namespace {

struct LoopContext {
  int64_t count;
  ParallelBody body;
  void* context;
};

void RunLoopPart(void* context, int index, int size) {
  const auto& loop = *static_cast<const LoopContext*>(context);
  const int64_t begin = loop.count * index / size;
  const int64_t end = loop.count * (index + 1) / size;
  if (begin < end) loop.body(loop.context, begin, end);
}

}  // namespace

void ParallelFor(int64_t count, ParallelBody body, void* context) {
  if (count <= 0) return;
  const int threads = static_cast<int>(std::min<int64_t>(count, NumThreads()));
  if (threads <= 1 || in_region) return body(context, 0, count);
  LoopContext loop{count, body, context};
  RunTeam(threads, &RunLoopPart, &loop);
}

}  // namespace collage

/// For generated machine code.
extern "C" void collage_parallel_for(int64_t count, void (*body)(void*, int64_t, int64_t), void* context) {
  collage::ParallelFor(count, body, context);
}
