// process_state.cc: taking and restoring the state; see process_state.h.
#include "worker/process_state.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "collage/runtime/thread_pool.h"

namespace collage {
namespace {

// Rounds of ending children: each may bring to light those that the ended ones had started.
constexpr int kRounds = 8;

std::vector<std::string> Environment() {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

std::string CurrentFolder() {
  std::error_code failure;
  return std::filesystem::current_path(failure).string();
}

/// The processes whose parent this one is.
std::vector<pid_t> ChildProcesses() {
  std::vector<pid_t> children;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    const std::string name = entry.path().filename().string();
    if (name.empty() || name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat;
    std::getline(std::ifstream(entry.path() / "stat"), stat);
    // pid (name) state parent …; the name may hold anything, so what counts comes after the last parenthesis.
    const size_t after = stat.rfind(')');
    int parent = 0;
    if (after == std::string::npos || std::sscanf(stat.c_str() + after + 1, " %*c %d", &parent) != 1) continue;
    if (parent == getpid()) children.push_back(std::stoi(name));
  }
  return children;
}

bool HasChildProcesses() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/// Whether more than half of the descriptors that this process may have are open.
bool HasManyFilesOpen(const rlimit& limit) {
  std::error_code failure;
  const std::filesystem::directory_iterator descriptors("/proc/self/fd", failure);
  if (failure) return failure == std::errc::too_many_files_open;
  const auto open = static_cast<rlim_t>(std::distance(begin(descriptors), end(descriptors)));
  return limit.rlim_cur != RLIM_INFINITY && open > limit.rlim_cur / 2;
}

}  // namespace

ProcessState::ProcessState() : locale_(setlocale(LC_ALL, nullptr)), folder_(CurrentFolder()) {
  std::fegetenv(&floating_point_);
  sched_getaffinity(0, sizeof processors_, &processors_);
  for (int signal = 1; signal < kNumSignals; ++signal) {
    sigaction(signal, nullptr, &handlers_[static_cast<size_t>(signal)]);
  }
  pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
  environment_ = Environment();
  file_mask_ = umask(0);
  umask(file_mask_);
  priority_ = getpriority(PRIO_PROCESS, 0);
  for (int i = 0; i < RLIM_NLIMITS; ++i) {
    getrlimit(static_cast<__rlimit_resource>(i), &limits_[static_cast<size_t>(i)]);
  }
}

void ProcessState::RestoreThread(void* state, int64_t, int64_t) {
  const auto& self = *static_cast<const ProcessState*>(state);
  std::fesetenv(&self.floating_point_);
  cpu_set_t now;
  if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &self.processors_) == 0) {
    sched_setaffinity(0, sizeof self.processors_, &self.processors_);
  }
}

bool ProcessState::RestoreLimits() const {
  bool restored = true;
  for (int i = 0; i < RLIM_NLIMITS; ++i) {
    const rlimit& wanted = limits_[static_cast<size_t>(i)];
    rlimit now{};
    if (getrlimit(static_cast<__rlimit_resource>(i), &now) != 0) continue;
    if (now.rlim_cur == wanted.rlim_cur && now.rlim_max == wanted.rlim_max) continue;
    restored &= setrlimit(static_cast<__rlimit_resource>(i), &wanted) == 0;
  }
  return restored;
}

void ProcessState::RestoreEnvironment() const {
  const std::vector<std::string> now = Environment();
  if (now == environment_) return;
  for (const std::string& entry : now) {
    const std::string name = entry.substr(0, entry.find('='));
    const bool is_known = std::any_of(environment_.begin(), environment_.end(), [&](const std::string& one) {
      return one.compare(0, name.size() + 1, name + "=") == 0;
    });
    if (!is_known) unsetenv(name.c_str());
  }
  for (const std::string& entry : environment_) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
}

bool ProcessState::Restore() const {
  // One range for each thread of the pool.
  ParallelFor(NumThreads(), &RestoreThread, const_cast<ProcessState*>(this));
  for (int signal = 1; signal < kNumSignals; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) sigaction(signal, &handlers_[static_cast<size_t>(signal)], nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  for (const auto timer : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    const itimerval off{};
    setitimer(timer, &off, nullptr);
  }
  if (locale_ != setlocale(LC_ALL, nullptr)) setlocale(LC_ALL, locale_.c_str());
  RestoreEnvironment();
  umask(file_mask_);
  bool restored = RestoreLimits();
  if (CurrentFolder() != folder_) restored &= chdir(folder_.c_str()) == 0;
  if (getpriority(PRIO_PROCESS, 0) != priority_) restored &= setpriority(PRIO_PROCESS, 0, priority_) == 0;
  return restored && !HasManyFilesOpen(limits_[RLIMIT_NOFILE]);
}

bool EndChildProcesses() {
  if (!HasChildProcesses()) return false;
  bool found = false;
  for (int round = 0; round < kRounds && HasChildProcesses(); ++round) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> running = ChildProcesses();
    found |= !running.empty();
    for (const pid_t child : running) kill(child, SIGKILL);
    for (const pid_t child : running) waitpid(child, nullptr, 0);
  }
  return found;
}

}  // namespace collage
