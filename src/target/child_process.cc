// child_process.cc: forking, one answer over a pipe, and the end.
#include "collage/target/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace collage {
namespace {

constexpr const char* kOrigin = "child process";
constexpr char kAnswers = 'a';
constexpr char kFails = 'f';

void WriteAll(int fd, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t written = write(fd, text.data() + sent, text.size() - sent);
    if (written < 0 && errno != EINTR) return;
    if (written > 0) sent += static_cast<size_t>(written);
  }
}

[[noreturn]] void RunChild(const std::function<std::string()>& answer, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);  // a crash is an answer here, not a core file
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  __fpurge(stdout);
  if (const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC); nothing >= 0) {
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, stream);
  }
  std::string text;
  try {
    text = kAnswers + answer();
  } catch (const std::exception& error) {
    text = std::string(1, kFails) + error.what();
  }
  WriteAll(fd, text);
  _exit(0);
}

/// Whether all that comes from `fd` came before `deadline`.
bool ReadAll(int fd, std::chrono::steady_clock::time_point deadline, std::string& text) {
  std::array<char, 1 << 16> chunk{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd polled{fd, POLLIN, 0};
    const int ready = left > 0 ? poll(&polled, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = read(fd, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    text.append(chunk.data(), static_cast<size_t>(count));
  }
}

}  // namespace

Result<std::string> AnswerInChild(const std::function<std::string()>& answer, std::chrono::milliseconds limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Reason{fmt::format("cannot open a pipe: {}", std::strerror(errno)), kOrigin};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    RunChild(answer, ends[1]);
  }
  const int error = errno;
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return Reason{fmt::format("cannot start a process: {}", std::strerror(error)), kOrigin};
  }
  std::string text;
  const bool is_in_time = ReadAll(ends[0], std::chrono::steady_clock::now() + limit, text);
  close(ends[0]);
  if (!is_in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!is_in_time) return Reason{fmt::format("took longer than {} ms", limit.count()), kOrigin};
  if (WIFSIGNALED(status)) {
    return Reason{fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))), kOrigin};
  }
  if (text.empty()) return Reason{"ended without an answer", kOrigin};
  if (text[0] == kFails) return Reason{text.substr(1), kOrigin};
  return text.substr(1);
}

}  // namespace collage
