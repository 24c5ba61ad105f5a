// process_state.h: what a toolchain may leave changed in the process that runs it, and that would change what the next
// one does: floating-point mode (denormals flushed, rounding), signal handlers and mask, processors, locale, working
// directory, environment, file mode mask, timers.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cfenv>
#include <csignal>
#include <string>
#include <vector>

namespace collage {

/// How the process was when this was made. The floating-point mode and the processors are put back on every thread of
/// the pool; other threads are their toolchains' own.
class ProcessState {
 public:
  ProcessState();

  /// Puts back what differs. False when something could not be put back (priority, limits, too many open files): then
  /// the process should no longer be used. Some 50 us.
  bool Restore() const;

 private:
  static constexpr int kNumSignals = 32;  // the real-time ones are nobody's business here

  static void RestoreThread(void* state, int64_t begin, int64_t end);
  bool RestoreLimits() const;
  void RestoreEnvironment() const;

  std::fenv_t floating_point_{};
  cpu_set_t processors_{};
  std::array<struct sigaction, kNumSignals> handlers_{};
  sigset_t mask_{};
  std::string locale_;
  std::string folder_;
  std::vector<std::string> environment_;
  mode_t file_mask_ = 0;
  int priority_ = 0;
  std::array<rlimit, RLIM_NLIMITS> limits_{};
};

/// Ends processes that were started from this one and have not ended. Returns whether there were any. Daemons count if
/// this process is a subreaper (prctl PR_SET_CHILD_SUBREAPER).
bool EndChildProcesses();

}  // namespace collage
