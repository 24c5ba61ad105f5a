// worker.cc: forking, talking over pipes, and burying workers.
#include "worker/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <thread>

#include "collage/support/error.h"
#include "support/environment.h"
#include "support/interruption.h"
#include "worker/process_state.h"
#include "worker/worker_message.h"

namespace collage {
namespace {

constexpr size_t kOutputTail = 400;  // characters of a dead child's output that go into the reason
constexpr size_t kChunk = size_t{1} << 16;
// How often a silent child is looked at: one that has ended need not close its pipes, if it left children that hold
// them.
constexpr int64_t kLookMilliseconds = 250;
// A child whose pipe is closed is about to end (its memory is freed before), or has closed it itself.
constexpr auto kTimeToEnd = std::chrono::seconds(1);

bool is_fresh_worker_wanted = false;
ForkHooks fork_hooks;

void RunHook(void (*hook)()) {
  if (hook != nullptr) hook();
}

/// Virtual memory of a process now, in bytes; 0 when it cannot be known.
int64_t VirtualMemory(const std::string& process) {
  std::ifstream statm("/proc/" + process + "/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

void LimitMemory(int64_t memory_bytes) {
  if (memory_bytes <= 0) return;
  const auto limit = static_cast<rlim_t>(VirtualMemory("self") + memory_bytes);
  const rlimit value{limit, limit};
  setrlimit(RLIMIT_AS, &value);
}

/// In a child: standard input is empty, what is printed goes to `output_fd`, nothing of the parent's is printed again.
void RedirectStandardStreams(int output_fd) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  __fpurge(stdout);
  dup2(output_fd, STDOUT_FILENO);
  dup2(output_fd, STDERR_FILENO);
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // so that the last line is out before a crash
}

/// Calls the handler; what it throws is a failure.
std::string Answer(const WorkerHandler& handler, const std::string& request, const SendProgress& progress,
                   MessageHeader& header) {
  header.kind = MessageKind::kFailure;
  try {
    std::string answer = handler(request, progress);
    header.kind = MessageKind::kAnswer;
    return answer;
  } catch (const std::bad_alloc&) {
    AskForFreshWorker();
    return "ran out of memory";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "threw something that is no std::exception";
  }
}

}  // namespace

void SetForkHooks(const ForkHooks& hooks) { fork_hooks = hooks; }

void AskForFreshWorker() { is_fresh_worker_wanted = true; }

void SignsOfLife::Say(std::string text) {
  text_ = std::move(text);
  last_ = std::chrono::steady_clock::now();
  (*progress_)(text_);
}

void SignsOfLife::SayAgain() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::seconds(1)) return;
  last_ = now;
  (*progress_)(text_);
}

Worker::Worker(WorkerHandler handler, WorkerLimits limits) : handler_(std::move(handler)), limits_(limits) {}

Worker::~Worker() { Stop(); }

void Worker::Start() {
  ShareTemporaries();
  int pipes[3][2];  // request, answer, output
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw Error(ErrorCategory::kResource, fmt::format("cannot open a pipe to a worker: {}", std::strerror(errno)));
    }
  }
  RunHook(fork_hooks.before);
  child_ = fork();
  RunHook(child_ == 0 ? fork_hooks.in_child : fork_hooks.in_parent);
  if (child_ < 0) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot start a worker: {}", std::strerror(errno)));
  }
  if (child_ == 0) {
    close(pipes[0][1]);
    close(pipes[1][0]);
    close(pipes[2][0]);
    RunChild(pipes[0][0], pipes[1][1], pipes[2][1]);
  }
  setpgid(child_, child_);  // as the child does itself: the first of both has effect
  NoteWorkerGroup(child_);
  close(pipes[0][0]);
  close(pipes[1][1]);
  close(pipes[2][1]);
  request_fd_ = pipes[0][1];
  answer_fd_ = pipes[1][0];
  output_fd_ = pipes[2][0];
  for (const int fd : {request_fd_, answer_fd_, output_fd_}) fcntl(fd, F_SETFL, O_NONBLOCK);
  output_.clear();
  memory_at_start_ = VirtualMemory(std::to_string(child_));
  ++num_starts_;
}

void Worker::RunChild(int request_fd, int answer_fd, int output_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);         // a crash is an answer here, not a core file
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that what a toolchain leaves running can be found
  setpgid(0, 0);                     // and ended together with this process
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the parent, which then ends this process
  RedirectStandardStreams(output_fd);
  LimitMemory(limits_.memory_bytes);
  const SendProgress progress = [&](const std::string& text) {
    if (!SendMessage(answer_fd, {.kind = MessageKind::kProgress}, text)) _exit(0);
  };
  const ProcessState state;
  for (;;) {
    const std::optional<std::string> request = ReceiveRequest(request_fd);
    if (!request) _exit(0);
    is_fresh_worker_wanted = false;
    MessageHeader header;
    const std::string answer = Answer(handler_, *request, progress, header);
    const bool has_left_processes = EndChildProcesses();
    header.is_last = !state.Restore() || has_left_processes || is_fresh_worker_wanted;
    header.is_suspect = is_fresh_worker_wanted;
    if (!SendMessage(answer_fd, header, answer)) _exit(0);
  }
}

bool Worker::IsAlive() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/// Whether so little is left of what the child may take that the next call could suffer from it.
bool Worker::HasGrown() const {
  return limits_.memory_bytes > 0 &&
         VirtualMemory(std::to_string(child_)) - memory_at_start_ > limits_.memory_bytes / 2;
}

/// Waits until `fd` can be read or written, taking what the child prints meanwhile: it must not wait for us.
Worker::Waited Worker::WaitFor(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const bool was_alive = IsAlive();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd fds[] = {{fd, events, 0}, {output_fd_, POLLIN, 0}};
    const int ready = poll(fds, 2, was_alive ? static_cast<int>(std::clamp<int64_t>(left, 0, kLookMilliseconds)) : 0);
    if (ready > 0 && fds[1].revents != 0) DrainOutput();
    if (ready > 0 && fds[0].revents != 0) return Waited::kReady;
    if (!was_alive) return Waited::kDied;
    if (left <= 0) return Waited::kTimeout;
  }
}

Worker::Waited Worker::Write(const std::string& bytes, Clock::time_point deadline) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t written = write(request_fd_, bytes.data() + sent, bytes.size() - sent);
    if (written > 0) {
      sent += static_cast<size_t>(written);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Waited::kDied;
    const Waited waited = WaitFor(request_fd_, POLLOUT, deadline);
    if (waited != Waited::kReady) return waited;
  }
  return Waited::kReady;
}

Worker::Waited Worker::Read(std::string& bytes, size_t size, Clock::time_point deadline) {
  bytes.clear();
  while (bytes.size() < size) {
    const Waited waited = WaitFor(answer_fd_, POLLIN, deadline);
    if (waited != Waited::kReady) return waited;
    // Memory is taken as bytes come: the size that was announced may be garbage.
    const size_t before = bytes.size();
    bytes.resize(before + std::min(size - before, kChunk));
    const ssize_t got = read(answer_fd_, bytes.data() + before, bytes.size() - before);
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return Waited::kDied;
  }
  return Waited::kReady;
}

/// Takes what there is and keeps the end of it.
void Worker::DrainOutput() {
  char chunk[kChunk];
  // No more than a pipe holds: a child that prints without end must not keep us here.
  for (size_t taken = 0; taken < kChunk && output_fd_ >= 0;) {
    const ssize_t got = read(output_fd_, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;
    if (got == 0) {
      close(output_fd_);
      output_fd_ = -1;
      return;
    }
    taken += static_cast<size_t>(got);
    output_.append(chunk, static_cast<size_t>(got));
    if (output_.size() > kOutputTail) output_.erase(0, output_.size() - kOutputTail);
  }
}

std::string Worker::LastOutput() {
  DrainOutput();
  std::string text = output_;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

void Worker::Stop() {
  if (child_ > 0) {
    kill(-child_, SIGKILL);
    kill(child_, SIGKILL);
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    ForgetWorkerGroup(child_);
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
  const std::string output = LastOutput();
  Stop();
  return Reason{output.empty() ? what : what + ": " + output, "worker"};
}

Reason Worker::Died(Waited how) {
  if (how == Waited::kTimeout) {
    return Died(fmt::format("did not answer within {} s", limits_.timeout.count() / 1000.0));
  }
  const auto until = Clock::now() + kTimeToEnd;
  while (IsAlive() && Clock::now() < until) {
    DrainOutput();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return Died("ended");
  if (info.si_pid == 0) return Died("closed its pipe to the compiler");
  if (info.si_code == CLD_EXITED) return Died(fmt::format("ended the worker with exit code {}", info.si_status));
  return Died(fmt::format("crashed with signal {} ({})", info.si_status, strsignal(info.si_status)));
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

Worker::Outcome Worker::Ask(const std::string& request, const std::function<void(const std::string&)>& on_progress) {
  if (child_ < 0) Start();
  DrainOutput();
  output_.clear();
  bool has_progress = false;
  const auto died = [&](auto how) { return Outcome{Died(how), !has_progress}; };
  const Waited written = Write(MessageBytes({.kind = MessageKind::kRequest}, request), Clock::now() + limits_.timeout);
  if (written != Waited::kReady) return died(written);
  for (;;) {
    const auto deadline = Clock::now() + limits_.timeout;
    std::string bytes;
    if (const Waited read = Read(bytes, sizeof(MessageHeader), deadline); read != Waited::kReady) return died(read);
    MessageHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (!header.IsValid()) return died(std::string("sent a malformed answer"));
    std::string text;
    if (const Waited read = Read(text, header.size, deadline); read != Waited::kReady) return died(read);
    if (header.kind == MessageKind::kProgress) {
      has_progress = true;
      if (on_progress) on_progress(text);
      continue;
    }
    if (header.is_last != 0) Stop();
    const bool is_suspect = header.is_suspect != 0 && !has_progress;
    if (header.kind == MessageKind::kAnswer) return {std::move(text), is_suspect};
    return {Reason{text, "worker"}, is_suspect};
  }
}

void Worker::Begin(const std::string& request) {
  if (GetEnvironment("COLLAGE_NO_WORKER")) return;
  std::signal(SIGPIPE, SIG_IGN);
  Start();
  Write(MessageBytes({.kind = MessageKind::kRequest}, request), Clock::now() + limits_.timeout);
}

Result<std::string> Worker::Call(const std::string& request,
                                 const std::function<void(const std::string&)>& on_progress) {
  if (GetEnvironment("COLLAGE_NO_WORKER")) return CallHere(request, on_progress);
  std::signal(SIGPIPE, SIG_IGN);
  if (child_ > 0 && (!IsAlive() || HasGrown())) Stop();
  const bool was_fresh = child_ < 0;
  Outcome outcome = Ask(request, on_progress);
  if (outcome.is_suspect && !was_fresh) outcome = Ask(request, on_progress);
  return std::move(outcome.answer);
}

}  // namespace collage
