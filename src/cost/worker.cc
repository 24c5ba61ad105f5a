// worker.cc: forking, talking over pipes, and burying workers.
#include "cost/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>

#include "collage/support/error.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kOutputTail = 400;  // characters of a dead child's output that go into the reason
constexpr uint64_t kLargestMessage = 1ull << 32;

enum class MessageKind : uint64_t { kAnswer = 1, kFailure = 2, kProgress = 3 };

struct Header {
  uint64_t kind;
  uint64_t size;
};

bool WriteAll(int fd, const void* data, size_t size) {
  const char* position = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(fd, position, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    position += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

bool SendMessage(int fd, MessageKind kind, const std::string& text) {
  const Header header{static_cast<uint64_t>(kind), text.size()};
  return WriteAll(fd, &header, sizeof header) && WriteAll(fd, text.data(), text.size());
}

enum class ReadStatus { kOk, kClosed, kTimeout };

ReadStatus ReadAll(int fd, void* data, size_t size, std::optional<Clock::time_point> deadline) {
  char* position = static_cast<char*>(data);
  while (size > 0) {
    int wait_ms = -1;
    if (deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      if (left <= 0) return ReadStatus::kTimeout;
      wait_ms = static_cast<int>(std::min<int64_t>(left, 1'000'000));
    }
    pollfd poll_fd{fd, POLLIN, 0};
    const int ready = poll(&poll_fd, 1, wait_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) continue;
    const ssize_t got = read(fd, position, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ReadStatus::kClosed;
    position += got;
    size -= static_cast<size_t>(got);
  }
  return ReadStatus::kOk;
}

/// Virtual memory of this process now, in bytes.
int64_t VirtualMemory() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void LimitMemory(int64_t memory_bytes) {
  if (memory_bytes <= 0) return;
  const auto limit = static_cast<rlim_t>(VirtualMemory() + memory_bytes);
  const rlimit value{limit, limit};
  setrlimit(RLIMIT_AS, &value);
}

}  // namespace

Worker::Worker(WorkerHandler handler, WorkerLimits limits) : handler_(std::move(handler)), limits_(limits) {}

Worker::~Worker() { Stop(); }

void Worker::Start() {
  int request[2];
  int answer[2];
  if (pipe2(request, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot open a pipe to a worker: {}", std::strerror(errno)));
  }
  output_fd_ = memfd_create("collage-worker-output", MFD_CLOEXEC);
  child_ = fork();
  if (child_ < 0) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot start a worker: {}", std::strerror(errno)));
  }
  if (child_ == 0) {
    close(request[1]);
    close(answer[0]);
    RunChild(request[0], answer[1]);
  }
  close(request[0]);
  close(answer[1]);
  request_fd_ = request[1];
  answer_fd_ = answer[0];
  ++num_starts_;
}

void Worker::RunChild(int request_fd, int answer_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);  // a crash is an answer here, not a core file
  for (int signal : {SIGINT, SIGTERM, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the parent, which then ends this process
  dup2(output_fd_, STDOUT_FILENO);
  dup2(output_fd_, STDERR_FILENO);
  LimitMemory(limits_.memory_bytes);
  const SendProgress progress = [&](const std::string& text) {
    if (!SendMessage(answer_fd, MessageKind::kProgress, text)) _exit(0);
  };
  for (;;) {
    Header header{};
    if (ReadAll(request_fd, &header, sizeof header, std::nullopt) != ReadStatus::kOk) _exit(0);
    std::string request(header.size, '\0');
    if (ReadAll(request_fd, request.data(), request.size(), std::nullopt) != ReadStatus::kOk) _exit(0);
    if (ftruncate(output_fd_, 0) == 0) lseek(output_fd_, 0, SEEK_SET);
    bool sent = false;
    try {
      sent = SendMessage(answer_fd, MessageKind::kAnswer, handler_(request, progress));
    } catch (const std::bad_alloc&) {
      sent = SendMessage(answer_fd, MessageKind::kFailure, "ran out of memory");
    } catch (const std::exception& error) {
      sent = SendMessage(answer_fd, MessageKind::kFailure, error.what());
    } catch (...) {
      sent = SendMessage(answer_fd, MessageKind::kFailure, "threw something that is no std::exception");
    }
    if (!sent) _exit(0);
  }
}

std::string Worker::LastOutput() const {
  const off_t size = lseek(output_fd_, 0, SEEK_END);
  if (size <= 0) return "";
  const auto wanted = std::min<off_t>(size, kOutputTail);
  std::string text(static_cast<size_t>(wanted), '\0');
  const ssize_t got = pread(output_fd_, text.data(), text.size(), size - wanted);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

void Worker::Stop() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  for (int* fd : {&request_fd_, &answer_fd_, &output_fd_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  child_ = -1;
}

void Worker::Restart() { Stop(); }

/// Buries the child and says how it ended.
Reason Worker::Died(const std::string& what) {
  std::string text = what;
  int status = 0;
  if (text.empty()) {
    kill(child_, 0);
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    if (WIFSIGNALED(status)) {
      text = fmt::format("crashed with signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
      text = fmt::format("ended the worker with exit code {}", WEXITSTATUS(status));
    }
  }
  const std::string output = LastOutput();
  Stop();
  return Reason{output.empty() ? text : text + ": " + output, "worker"};
}

/// For debugging a toolchain: everything happens in this process, crashes included.
Result<std::string> Worker::CallHere(const std::string& request,
                                     const std::function<void(const std::string&)>& on_progress) {
  try {
    return handler_(request, [&](const std::string& text) {
      if (on_progress) on_progress(text);
    });
  } catch (const std::exception& error) {
    return Reason{error.what(), "worker"};
  }
}

Result<std::string> Worker::Call(const std::string& request,
                                 const std::function<void(const std::string&)>& on_progress) {
  if (std::getenv("COLLAGE_NO_WORKER") != nullptr) return CallHere(request, on_progress);
  if (child_ < 0) Start();
  std::signal(SIGPIPE, SIG_IGN);
  if (!SendMessage(request_fd_, MessageKind::kAnswer, request)) return Died("");
  for (;;) {
    const auto deadline = Clock::now() + limits_.timeout;
    Header header{};
    ReadStatus status = ReadAll(answer_fd_, &header, sizeof header, deadline);
    std::string text;
    if (status == ReadStatus::kOk) {
      if (header.size > kLargestMessage) return Died("sent a malformed answer");
      text.resize(header.size);
      status = ReadAll(answer_fd_, text.data(), text.size(), deadline);
    }
    if (status == ReadStatus::kTimeout) {
      return Died(fmt::format("did not answer within {} s", limits_.timeout.count() / 1000.0));
    }
    if (status == ReadStatus::kClosed) return Died("");
    switch (static_cast<MessageKind>(header.kind)) {
      case MessageKind::kAnswer: return text;
      case MessageKind::kFailure: return Reason{text, "worker"};
      case MessageKind::kProgress:
        if (on_progress) on_progress(text);
        break;
      default: return Died("sent a malformed answer");
    }
  }
}

}  // namespace collage
