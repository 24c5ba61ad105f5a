// timing_lock.cc: flock on two files.
#include "cost/measure/timing_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "support/environment.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookAgain = std::chrono::microseconds(500);

/// The folder of the lock's files, made if need be; empty when it is not this user's own.
std::string LockFolder() {
  const std::string runtime = GetEnvironment("XDG_RUNTIME_DIR").value_or("");
  const std::string folder =
      runtime.starts_with('/') ? fmt::format("{}/collage", runtime) : fmt::format("/tmp/collage-{}", getuid());
  mkdir(folder.c_str(), S_IRWXU);
  struct stat status {};
  const bool is_own = lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == getuid();
  return is_own ? folder : "";
}

/// The lock's files, open in this process and, as locks belong to the opening, not in its parent.
struct LockFiles {
  pid_t process = 0;
  int gate = -1;
  int lock = -1;
};

const LockFiles& Files() {
  static LockFiles files;
  if (files.process == getpid()) return files;
  for (int* fd : {&files.gate, &files.lock}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  files.process = getpid();
  const std::string folder = LockFolder();
  if (folder.empty()) return files;
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  files.gate = open((folder + "/timing.gate").c_str(), kFlags, S_IRUSR | S_IWUSR);
  files.lock = open((folder + "/timing.lock").c_str(), kFlags, S_IRUSR | S_IWUSR);
  return files;
}

/// False when it could not be had in time, or at all.
bool Take(int fd, int operation, Clock::time_point until) {
  if (fd < 0) return false;
  while (flock(fd, operation | LOCK_NB) != 0) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

}  // namespace

TimingLock::TimingLock(Mode mode, std::chrono::milliseconds wait) {
  const LockFiles& files = Files();
  const auto until = Clock::now() + wait;
  const int operation = mode == Mode::kAlone ? LOCK_EX : LOCK_SH;
  if (!Take(files.gate, operation, until)) return;
  is_held_ = Take(files.lock, operation, until);
  flock(files.gate, LOCK_UN);
}

TimingLock::~TimingLock() {
  if (is_held_) flock(Files().lock, LOCK_UN);
}

}  // namespace collage
