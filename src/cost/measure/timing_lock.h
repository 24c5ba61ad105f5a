// timing_lock.h: several Collage processes on one machine do not disturb each other's timings.
//
// A process that times holds the lock alone; processes that compile or check share it. It is kept in the user's files
// ($XDG_RUNTIME_DIR/collage, else /tmp/collage-UID), locked by flock, so that the system frees it whatever becomes of
// the holder. There are two files: a process that waits for exclusive access holds the first, through which newcomers
// pass, so that a stream of newcomers cannot starve it. Waits are bounded: after a timeout the process continues
// without the lock, and a timing may be disturbed, but no measurement fails or blocks.
#pragma once

#include <chrono>
#include <cstdint>

namespace collage {

class TimingLock {
 public:
  enum class Mode : uint8_t { kShared, kAlone };

  /// Waits `wait` at most.
  explicit TimingLock(Mode mode, std::chrono::milliseconds wait = std::chrono::seconds(2));
  ~TimingLock();
  TimingLock(const TimingLock&) = delete;
  TimingLock& operator=(const TimingLock&) = delete;

  bool is_held() const { return is_held_; }

 private:
  bool is_held_ = false;
};

}  // namespace collage
