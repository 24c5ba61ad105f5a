// timing_lock.h: several Collage processes on one machine do not disturb each other's timings.
//
// Who times holds the lock alone; who compiles or checks holds it together with others. It lies in files of the user's
// ($XDG_RUNTIME_DIR/collage, else /tmp/collage-UID), locked by flock, so that the system frees it whatever becomes of
// the holder. Two files: whoever waits to be alone holds the first, which newcomers pass through, and so is not kept
// waiting by a stream of them. Waits are bounded, and what cannot be had is done without: a timing may then be
// disturbed, but no measurement fails or stands still.
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
