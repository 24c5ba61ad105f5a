// thread_pool.cc: one pool per process: workers that spin for a moment, then sleep.
#include "collage/runtime/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/threads/team.h"
#include "runtime/threads/team_watch.h"

namespace collage {
namespace {

// How long a worker spins for the next region before it sleeps: long enough to bridge the gap between two kernels of
// one inference, short enough not to burn a core that another runtime's pool waits for.
constexpr auto kSpin = std::chrono::microseconds(30);

// Pauses before a waiting thread of a team lends its processor to others: some 50 us, so that it happens only when
// there are fewer processors than threads.
constexpr int kPausesBeforeYield = 1024;

constexpr uint32_t kSizeBits = 8;
constexpr uint32_t kSizeMask = (1u << kSizeBits) - 1;
constexpr int kMaxThreads = static_cast<int>(kSizeMask);

/// The calling thread's place in its team.
struct Membership {
  bool inside = false;
  int index = 0;
  int size = 1;
};

thread_local Membership self;
thread_local std::vector<Membership> outer;  // what `self` was at each collage_team_begin that has not ended
thread_local std::vector<TeamShare>* watched_by = nullptr;

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <typename Condition>
void SpinUntil(Condition&& condition) {
  for (int pauses = 0; !condition(); ++pauses) {
    if (pauses < kPausesBeforeYield) {
      Pause();
    } else {
      sched_yield();
    }
  }
}

/// Workers of this process. The thread that begins a region is number 0; workers 1 … n-1 run the region's function.
class Pool {
 public:
  /// A forked child has none of its parent's threads, and so makes a pool of its own.
  static Pool& Get() {
    Pool* pool = current.load(std::memory_order_acquire);
    if (pool != nullptr) return *pool;
    static const int registered = pthread_atfork(nullptr, nullptr, [] { current.store(nullptr); });
    static_cast<void>(registered);
    auto* made = new Pool;  // never freed: its threads live as long as the process
    if (current.compare_exchange_strong(pool, made)) return *made;
    delete made;  // another thread was faster; this one has no workers yet
    return *pool;
  }

  /// Starts a region and returns its number of threads: less than asked for when the system gives no more. Other
  /// threads that begin a region wait until this one ends.
  int Begin(int num_threads, collage_team_function function, void* context) {
    region_.lock();
    Grow(num_threads - 1);
    shares_ = watched_by;
    function_ = shares_ == nullptr ? function : &RunWatched;
    context_ = shares_ == nullptr ? context : this;
    if (shares_ != nullptr) watched_ = {function, context};
    size_ = std::min(num_threads, static_cast<int>(threads_.size()) + 1);
    running_.store(size_ - 1, std::memory_order_relaxed);
    const uint32_t count = (generation_.load(std::memory_order_relaxed) >> kSizeBits) + 1;
    generation_.store((count << kSizeBits) | static_cast<uint32_t>(size_), std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) FutexWake(generation_);
    if (shares_ != nullptr) times_[0].begin = std::chrono::steady_clock::now();
    return size_;
  }

  void End() {
    if (shares_ != nullptr) times_[0].end = std::chrono::steady_clock::now();
    SpinUntil([&] { return running_.load(std::memory_order_acquire) == 0; });
    if (shares_ != nullptr && size_ > 1) {
      for (int thread = 0; thread < size_; ++thread) {
        times_[static_cast<size_t>(thread)].thread = thread;
        shares_->push_back(times_[static_cast<size_t>(thread)]);
      }
    }
    region_.unlock();
  }

  void Barrier() {
    const uint32_t phase = barrier_phase_.load(std::memory_order_acquire);
    if (barrier_count_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      barrier_count_.store(0, std::memory_order_relaxed);
      barrier_phase_.fetch_add(1, std::memory_order_release);
      return;
    }
    SpinUntil([&] { return barrier_phase_.load(std::memory_order_acquire) != phase; });
  }

 private:
  void Grow(int workers) {
    try {
      while (static_cast<int>(threads_.size()) < workers) {
        const int index = static_cast<int>(threads_.size()) + 1;
        threads_.emplace_back([this, index, seen = generation_.load()] { Work(index, seen); });
        threads_.back().detach();
      }
    } catch (const std::system_error&) {
      // A limit on threads: generated code cannot be told, and computes the same with a smaller team.
    }
  }

  void Work(int index, uint32_t seen) {
    for (;;) {
      AwaitChange(seen);
      seen = generation_.load(std::memory_order_acquire);
      // The team's size is read from the same word as the region's number: what a worker that is not in the team reads
      // of a later region cannot be mixed up with it.
      const int size = static_cast<int>(seen & kSizeMask);
      if (index >= size) continue;
      self = {true, index, size};
      function_(context_, index, size);
      self = {};
      running_.fetch_sub(1, std::memory_order_release);
    }
  }

  /// Runs a watched region's function on a worker.
  static void RunWatched(void* context, int index, int size) {
    Pool& pool = *static_cast<Pool*>(context);
    TeamShare& times = pool.times_[static_cast<size_t>(index)];
    times.begin = std::chrono::steady_clock::now();
    pool.watched_.function(pool.watched_.context, index, size);
    times.end = std::chrono::steady_clock::now();
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

  static std::atomic<Pool*> current;

  /// The function of a watched region.
  struct Watched {
    collage_team_function function = nullptr;
    void* context = nullptr;
  };

  std::mutex region_;
  std::vector<std::thread> threads_;
  collage_team_function function_ = nullptr;
  void* context_ = nullptr;
  int size_ = 1;
  std::atomic<uint32_t> generation_{0};  ///< number of the region, and in the low bits its team's size
  std::atomic<int> running_{0};          ///< workers that have not finished the region
  std::atomic<int> sleepers_{0};
  std::atomic<int> barrier_count_{0};
  std::atomic<uint32_t> barrier_phase_{0};
  std::vector<TeamShare>* shares_ = nullptr;  ///< the region's watcher; null: nobody watches it
  Watched watched_;
  std::array<TeamShare, kMaxThreads + 1> times_;  ///< in a watched region, each written by its thread
};

std::atomic<Pool*> Pool::current{nullptr};

std::atomic<int> num_threads_setting{0};

struct LoopContext {
  int64_t count;
  ParallelBody body;
  void* context;
};

void RunLoopPart(void* context, int index, int size) {
  const auto& loop = *static_cast<const LoopContext*>(context);
  // The first `rest` threads take one more; products of count and index could overflow.
  const int64_t part = loop.count / size;
  const int64_t rest = loop.count % size;
  const int64_t begin = part * index + std::min<int64_t>(index, rest);
  const int64_t end = begin + part + (index < rest ? 1 : 0);
  if (begin < end) loop.body(loop.context, begin, end);
}

}  // namespace

void WatchTeams(std::vector<TeamShare>* shares) { watched_by = shares; }

void SetNumThreads(int num_threads) { num_threads_setting = std::clamp(num_threads, 1, kMaxThreads); }

int NumThreads() {
  const int set = num_threads_setting.load(std::memory_order_relaxed);
  if (set > 0) return set;
  static const int available = std::min(AvailableProcessors(), kMaxThreads);
  return available;
}

void ParallelFor(int64_t count, ParallelBody body, void* context) {
  if (count <= 0) return;
  const int threads = static_cast<int>(std::min<int64_t>(count, NumThreads()));
  if (threads <= 1 || self.inside) return body(context, 0, count);
  LoopContext loop{count, body, context};
  collage_team_begin(threads, &RunLoopPart, &loop);
  RunLoopPart(&loop, self.index, self.size);
  collage_team_end();
}

}  // namespace collage

extern "C" {

void collage_team_begin(int num_threads, collage_team_function function, void* context) {
  using namespace collage;
  outer.push_back(self);
  const bool alone = num_threads <= 1 || self.inside;
  self = {true, 0, alone ? 1 : Pool::Get().Begin(std::min(num_threads, kMaxThreads), function, context)};
  // A team of one that the pool began must also be ended by it, so its lock is not kept.
  if (!alone && self.size == 1) Pool::Get().End();
}

void collage_team_end(void) {
  using namespace collage;
  if (self.size > 1) Pool::Get().End();
  self = outer.back();
  outer.pop_back();
}

void collage_team_barrier(void) {
  if (collage::self.size > 1) collage::Pool::Get().Barrier();
}

int collage_team_index(void) { return collage::self.index; }
int collage_team_size(void) { return collage::self.size; }
int collage_in_team(void) { return collage::self.inside ? 1 : 0; }
int collage_num_threads(void) { return collage::NumThreads(); }

/// For generated machine code.
void collage_parallel_for(int64_t count, void (*body)(void*, int64_t, int64_t), void* context) {
  collage::ParallelFor(count, body, context);
}

}  // extern "C"
