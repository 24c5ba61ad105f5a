// worker.h: a child process that does what must not be able to harm the compiler: running vendors' libraries and
// generated code. It may crash, hang, run out of memory or print garbage; the answer is then a reason.
//
// The child is forked from this process, so it sees the model, the candidates and their constants without any
// copying, and is forked again when it has died or when what it should see has changed. The parent must not have
// initialised any vendor's library and runs no threads of its own but the pool's, which the child replaces.
//
// One call must not be able to harm the next either. After each the child puts back what a library may have changed in
// it (process_state.h) and ends processes that were left running. It is replaced when that fails, when its memory has
// grown by half of what it may take, when it died between calls, or when a handler asked for it. A call that ends in
// death, silence or doubt (AskForFreshWorker) in a child that had answered others before is made again, in a fresh one:
// what an earlier call left behind is not held against it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "collage/support/result.h"

namespace collage {

struct WorkerLimits {
  /// Longest silence: a call that sends neither progress nor its answer for so long is killed.
  std::chrono::milliseconds timeout{60'000};
  /// Memory beyond what the parent has, in bytes; 0 = no limit.
  int64_t memory_bytes = 0;
};

/// Sends a line of progress from within a handler to the parent; also proves that the call is alive.
using SendProgress = std::function<void(const std::string& text)>;

/// Sends a handler's last progress again while it makes many small steps, at most once a second: each step then has the
/// time that a call may be silent.
class SignsOfLife {
 public:
  /// `progress` must outlive it. Says nothing yet.
  explicit SignsOfLife(const SendProgress& progress, std::string text = "")
      : progress_(&progress), text_(std::move(text)) {}
  /// Sends `text`, and has SayAgain send it.
  void Say(std::string text);
  void SayAgain();

 private:
  const SendProgress* progress_;
  std::string text_;
  std::chrono::steady_clock::time_point last_;
};

/// Runs in the child: answers `request`. Throwing Error, or any exception, makes the call fail with its text.
using WorkerHandler = std::function<std::string(const std::string& request, const SendProgress& progress)>;

/// Within a handler: something is wrong with this process, or may be after this call. The answer counts only when the
/// worker answered nothing before, else the call is made again in a fresh one; in either case this one is replaced.
void AskForFreshWorker();

/// Functions of another language's runtime, such as Python's, around a fork, so that the child can use it. All are
/// called by the thread that forks.
struct ForkHooks {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
/// Replaces the hooks of this process; a null one does nothing. Not thread-safe: when a module is loaded.
void SetForkHooks(const ForkHooks& hooks);

/// One worker. Calls are synchronous. Not thread-safe. With $COLLAGE_NO_WORKER set there is no child: requests are
/// answered in this process, so that a debugger sees a crash.
class Worker {
 public:
  Worker(WorkerHandler handler, WorkerLimits limits);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The handler's answer, or why there is none ("crashed with signal 11 (Segmentation fault): last output …").
  /// `on_progress` is called in this process for each progress line. A call that sent progress is never made again.
  Result<std::string> Call(const std::string& request,
                           const std::function<void(const std::string&)>& on_progress = nullptr);

  /// Has a fresh child work on `request`, and does not wait for it: the answer is lost. To be called once, in place of
  /// `Call`; the child ends with this object. With $COLLAGE_NO_WORKER set it does nothing.
  void Begin(const std::string& request);

  /// Ends the child; the next call forks a new one that sees this process as it is then.
  void Restart();

  /// How often a child was started.
  int num_starts() const { return num_starts_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Waited : uint8_t { kReady, kTimeout, kDied };
  struct Outcome {
    Result<std::string> answer;
    bool is_suspect = false;  ///< died, silent or in doubt
  };

  Result<std::string> CallHere(const std::string& request, const std::function<void(const std::string&)>& on_progress);
  Outcome Ask(const std::string& request, const std::function<void(const std::string&)>& on_progress);
  void Start();
  void Stop();
  [[noreturn]] void RunChild(int request_fd, int answer_fd, int output_fd);
  bool IsAlive() const;
  bool HasGrown() const;
  Waited WaitFor(int fd, short events, Clock::time_point deadline);
  Waited Write(const std::string& bytes, Clock::time_point deadline);
  Waited Read(std::string& bytes, size_t size, Clock::time_point deadline);
  void DrainOutput();
  std::string LastOutput();
  Reason Died(Waited how);
  Reason Died(const std::string& what);

  WorkerHandler handler_;
  WorkerLimits limits_;
  pid_t child_ = -1;
  int request_fd_ = -1;
  int answer_fd_ = -1;
  int output_fd_ = -1;  ///< a pipe with what the child prints
  std::string output_;  ///< the last of it
  int64_t memory_at_start_ = 0;
  int num_starts_ = 0;
};

}  // namespace collage
