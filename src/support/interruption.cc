// interruption.cc: two tables of fixed size, and a handler that calls nothing but what is safe in one
// (signal-safety(7)).
#include "support/interruption.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <mutex>

namespace collage {
namespace {

constexpr int kMostTemporaries = 256;
constexpr int kMostGroups = 64;
constexpr pid_t kFree = 0;
constexpr pid_t kBeingFilled = -1;

/// A path, and the process that noted it.
struct Temporary {
  std::atomic<pid_t> owner;
  char path[PATH_MAX];
};

using Temporaries = std::array<Temporary, kMostTemporaries>;
static_assert(std::atomic<pid_t>::is_always_lock_free, "handlers and other processes read it");

/// Memory of zeros that is shared with processes that are forked later: the pages that nobody uses take no room. Null
/// when there is none.
Temporaries* NewTable() {
  void* memory = mmap(nullptr, sizeof(Temporaries), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Temporaries*>(memory);
}

std::atomic<Temporaries*> temporaries{nullptr};
std::atomic<pid_t> groups[kMostGroups];

// ---- in the handler: no allocation, no locks ----

/// A directory entry as the kernel writes it.
struct Entry {
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[1];
};

/// Removes `name` in the folder `parent`, and what is in it.
void RemoveTree(int parent, const char* name, int depth) {
  constexpr int kDeepest = 16;
  constexpr int kPasses = 3;  // entries may be passed over while others are removed
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT || depth > kDeepest) return;
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  for (int pass = 0; pass < kPasses && unlinkat(parent, name, AT_REMOVEDIR) != 0; ++pass) {
    lseek(folder, 0, SEEK_SET);
    alignas(Entry) char buffer[2048];
    for (;;) {
      const auto got = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
      if (got <= 0) break;
      for (long at = 0; at < got;) {
        const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
        const char* entry_name = buffer + at + offsetof(Entry, name);
        if (std::strcmp(entry_name, ".") != 0 && std::strcmp(entry_name, "..") != 0) {
          RemoveTree(folder, entry_name, depth + 1);
        }
        at += entry->size;
      }
    }
  }
  close(folder);
}

/// Removes the files that `owner` noted; -1: those of all.
void RemoveNoted(pid_t owner) {
  Temporaries* table = temporaries.load();
  if (table == nullptr) return;
  for (Temporary& one : *table) {
    pid_t found = one.owner.load();
    if (found <= 0 || (owner >= 0 && found != owner)) continue;
    if (!one.owner.compare_exchange_strong(found, kBeingFilled)) continue;
    RemoveTree(AT_FDCWD, one.path, 0);
    one.owner.store(kFree);
  }
}

/// Kills all groups and waits for their leaders, so that nobody writes any more into what is removed then.
void EndGroups() {
  for (std::atomic<pid_t>& group : groups) {
    const pid_t leader = group.load();
    if (leader > 0) kill(-leader, SIGKILL);
  }
  for (std::atomic<pid_t>& group : groups) {
    const pid_t leader = group.exchange(kFree);
    constexpr int kMostWaits = 1000;
    constexpr timespec kWait{0, 1'000'000};
    for (int i = 0; leader > 0 && i < kMostWaits; ++i) {
      const pid_t ended = waitpid(leader, nullptr, WNOHANG);
      if (ended == leader || (ended < 0 && errno == ECHILD)) break;
      nanosleep(&kWait, nullptr);
    }
  }
}

pid_t process_of_handler = 0;
bool has_terminal = false;

std::atomic<bool> ends_gently = false;
std::atomic<bool> is_asked_to_end = false;

/// Whether this signal only asks. Says so.
bool OnlyAsks(int signal) {
  if (!ends_gently || signal == SIGHUP || getpid() != process_of_handler || is_asked_to_end.exchange(true))
    return false;
  constexpr std::string_view kText = "\ncollage: ending with what is known so far; once more to end at once\n";
  const std::string_view text = has_terminal ? kText : kText.substr(1);  // a line of progress may be open
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) has_terminal = false;
  return true;
}

void CleanUpAndEnd(int signal) {
  if (OnlyAsks(signal)) return;
  if (getpid() == process_of_handler) {
    EndGroups();
    RemoveNoted(-1);
    // A line of progress may be open.
    if (has_terminal && write(STDERR_FILENO, "\n", 1) < 0) has_terminal = false;
  }
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  raise(signal);  // when this returns
}

}  // namespace

NotedTemporary::NotedTemporary(const std::filesystem::path& path) {
  ShareTemporaries();
  Temporaries* table = temporaries.load();
  if (table == nullptr || path.native().size() >= sizeof(Temporary::path)) return;
  for (Temporary& one : *table) {
    pid_t expected = kFree;
    if (!one.owner.compare_exchange_strong(expected, kBeingFilled)) continue;
    std::memcpy(one.path, path.c_str(), path.native().size() + 1);
    one.owner.store(getpid());
    entry_ = &one;
    return;
  }
}

NotedTemporary::~NotedTemporary() {
  if (entry_ == nullptr) return;
  // In a process that was forked since, it is its parent's.
  pid_t own = getpid();
  static_cast<Temporary*>(entry_)->owner.compare_exchange_strong(own, kFree);
}

void ShareTemporaries() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (temporaries.load() == nullptr) temporaries.store(NewTable());
  });
}

void NoteWorkerGroup(pid_t process) {
  for (std::atomic<pid_t>& group : groups) {
    pid_t expected = kFree;
    if (group.compare_exchange_strong(expected, process)) return;
  }
}

void ForgetWorkerGroup(pid_t process) {
  for (std::atomic<pid_t>& group : groups) {
    pid_t expected = process;
    if (group.compare_exchange_strong(expected, kFree)) break;
  }
  RemoveNoted(process);
}

void CleanUpWhenInterrupted() {
  process_of_handler = getpid();
  temporaries.store(NewTable());  // files that the parent noted are not this process's to remove
  has_terminal = isatty(STDERR_FILENO) != 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = CleanUpAndEnd;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

void EndGently() { ends_gently = true; }
bool IsAskedToEnd() { return is_asked_to_end; }

}  // namespace collage
