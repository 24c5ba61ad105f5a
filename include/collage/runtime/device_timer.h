// device_timer.h: devices that tell how long they work, by a clock of their own: CUDA's events.
#pragma once

#include <cstddef>
#include <functional>

namespace collage {

/// Base class of a `Device` with a clock.
class TimesWork {
 public:
  virtual ~TimesWork() = default;
  /// Calls `before`, then `work`, and returns the seconds from the moment at which the device has done what `before`
  /// asked for to that at which it has done what `work` asked for, too. Waits for both. If `before` keeps the device
  /// busy until `work` has asked for all, no time of the host is part of it.
  virtual double SecondsOfWork(const std::function<void()>& before, const std::function<void()>& work) = 0;
  /// Bytes of the device's last cache before its memory; 0 if not known.
  virtual size_t CacheBytes() = 0;
  /// How many times slower than usual the device says that it is, because of its temperature or power; 1 where it says
  /// nothing.
  virtual double Slowdown() { return 1; }
};

}  // namespace collage
