// helper_process.cc: spawning, lines over a socket, and how a program ended.
#include "cost/runner/helper_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "collage/support/error.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr off_t kErrorTail = 1000;  // characters of its standard error that are shown

/// Whether `events` came within `patience`.
bool WaitFor(int fd, short events, Milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd poll_fd{fd, events, 0};
    const int ready = poll(&poll_fd, 1, static_cast<int>(std::min<int64_t>(left.count(), 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the call that follows says what is wrong
  }
}

[[noreturn]] void Refused(const char* what) {
  throw Error(ErrorCategory::kResource, fmt::format("cannot {}: {}", what, std::strerror(errno)));
}

/// posix_spawn's two arguments that need destroying.
struct SpawnArguments {
  SpawnArguments() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnArguments() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnArguments(const SpawnArguments&) = delete;
  SpawnArguments& operator=(const SpawnArguments&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

}  // namespace

HelperProcess::HelperProcess(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) Refused("open a socket to a helper");
  errors_ = memfd_create("collage-helper-errors", MFD_CLOEXEC);
  SpawnArguments spawn;
  posix_spawn_file_actions_adddup2(&spawn.files, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.files, ends[1], STDOUT_FILENO);
  if (errors_ >= 0) posix_spawn_file_actions_adddup2(&spawn.files, errors_, STDERR_FILENO);
  sigset_t all;
  sigset_t none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setpgroup(&spawn.attributes, 0);
  posix_spawnattr_setsigdefault(&spawn.attributes, &all);
  posix_spawnattr_setsigmask(&spawn.attributes, &none);
  posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int failed = posix_spawnp(&child_, arguments[0], &spawn.files, &spawn.attributes, arguments.data(), environ);
  close(ends[1]);
  socket_ = ends[0];
  if (failed == 0) return;
  close(socket_);
  if (errors_ >= 0) close(errors_);
  throw Error(ErrorCategory::kUnavailable, fmt::format("cannot start '{}': {}", command[0], std::strerror(failed)));
}

HelperProcess::~HelperProcess() {
  Stop(kGrace);
  if (errors_ >= 0) close(errors_);
}

HelperProcess::Status HelperProcess::Send(std::string_view data, Milliseconds patience) {
  while (!data.empty()) {
    const ssize_t sent = send(socket_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      data.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!WaitFor(socket_, POLLOUT, patience)) return Status::kSilent;
    } else if (errno != EINTR) {
      return Status::kEnded;
    }
  }
  return Status::kDone;
}

HelperProcess::Status HelperProcess::WriteLine(std::initializer_list<std::string_view> parts, Milliseconds patience) {
  if (socket_ < 0) return Status::kEnded;
  Status status = Status::kDone;
  for (std::string_view part : parts) {
    if (status == Status::kDone) status = Send(part, patience);
  }
  return status == Status::kDone ? Send("\n", patience) : status;
}

HelperProcess::Status HelperProcess::ReadLine(std::string& line, Milliseconds patience) {
  for (size_t searched = 0;;) {
    const size_t end = unread_.find('\n', searched);
    if (end != std::string::npos) {
      line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return Status::kDone;
    }
    searched = unread_.size();
    if (socket_ < 0) return Status::kEnded;
    if (!WaitFor(socket_, POLLIN, patience)) return Status::kSilent;
    std::array<char, 1 << 16> buffer;
    const ssize_t got = recv(socket_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Status::kEnded;
    unread_.append(buffer.data(), static_cast<size_t>(got));
  }
}

std::string HelperProcess::LastErrors() const {
  const off_t size = errors_ < 0 ? 0 : lseek(errors_, 0, SEEK_END);
  if (size <= 0) return "";
  const off_t wanted = std::min(size, kErrorTail);
  std::string text(static_cast<size_t>(wanted), '\0');
  const ssize_t got = pread(errors_, text.data(), text.size(), size - wanted);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\n') c = ' ';
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
  return text;
}

int HelperProcess::Stop(Milliseconds grace) {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (child_ < 0) return 0;
  const auto deadline = Clock::now() + grace;
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child_, &status, WNOHANG);
    if (ended == child_ || (ended < 0 && errno != EINTR)) break;
    if (Clock::now() < deadline) {
      std::this_thread::sleep_for(Milliseconds(5));
      continue;
    }
    kill(-child_, SIGKILL);
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    break;
  }
  child_ = -1;
  return status;
}

std::string HelperProcess::Bury() {
  const int status = Stop(kGrace);
  if (!WIFSIGNALED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

void HelperProcess::Kill() { Stop(Milliseconds(0)); }

}  // namespace collage
