// interruption.h: what must not outlive a command that a signal ends: temporary files and folders, worker processes.
// Destructors do not run then, so both are noted in tables that a signal handler can read.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace collage {

/// Notes that `path`, a file or a folder with all in it, is temporary, for as long as this lives. Its maker still
/// removes it. There is room for 256 at once in a process and its workers; more are not noted.
class NotedTemporary {
 public:
  explicit NotedTemporary(const std::filesystem::path& path);
  ~NotedTemporary();
  NotedTemporary(const NotedTemporary&) = delete;
  NotedTemporary& operator=(const NotedTemporary&) = delete;

 private:
  void* entry_ = nullptr;
};

/// Called before a worker is forked: what it notes can then be removed by this process.
void ShareTemporaries();

/// Notes that `process` leads a group of worker processes, and forgets it.
void NoteWorkerGroup(pid_t process);
/// Also removes what the worker, which has ended, had noted and left.
void ForgetWorkerGroup(pid_t process);

/// From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, end the workers and remove all that is noted before
/// they end this process. For commands: a library leaves signals to its host.
void CleanUpWhenInterrupted();

/// From now on the first SIGINT or SIGTERM does no more than say, on standard error, that the command ends as soon as
/// it can; the next one ends it. After CleanUpWhenInterrupted.
void EndGently();
/// Whether there was a signal since EndGently.
bool IsAskedToEnd();

}  // namespace collage
