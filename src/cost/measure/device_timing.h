// device_timing.h: times kernels of a device by the device's own clock.
//
// Method: a batch of runs is recorded once and repeated as a whole, as an executable repeats the kernels of a device
// (runtime/plan/device_stretches.h), between two readings of the device's clock. The host's effort to launch them is
// then no part of their time, nor is it in a run of a model; the device's own effort from one kernel to the next is. An
// untimed batch comes before it, so that the device is busy until it has been asked for all. A device that cannot
// record is asked for one run after the other.
//
// Caches: near or shared operands are as a batch of runs leaves them. For operands in memory, the device's last cache
// is overwritten before each run, which is then timed alone.
//
// The clock of a CUDA event ticks every half microsecond: batches are longer than those that the host times.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "collage/runtime/device.h"
#include "collage/runtime/device_timer.h"
#include "collage/runtime/recorded_work.h"
#include "cost/measure/drift.h"
#include "cost/measure/timing.h"

namespace collage {

/// One kernel's timing. Not thread-safe.
class DeviceTiming {
 public:
  /// `run` asks `device`, whose main memory is `memory`, for one run, and may not wait for it. Null if the device has
  /// no clock.
  static std::unique_ptr<DeviceTiming> Make(Memory memory, std::function<void()> run, CacheLevel operands);

  /// Seconds of `num_runs` runs (TimingHooks::time_batch).
  double Seconds(int num_runs);
  /// Returns `timing` with batches that the device's clock resolves.
  static TimingOptions ForClock(TimingOptions timing);
  /// Tells whether the device is as fast as usual in this process: by copies within its memory, and by what it says of
  /// its clocks.
  DriftWatch& watch();

 private:
  DeviceTiming(Memory memory, TimesWork& timer, std::function<void()> run, CacheLevel operands);

  const std::function<void()>& BatchOf(int num_runs);
  void Evict() const;

  Memory memory_;
  Device& device_;
  TimesWork& timer_;
  RecordsWork* recorder_;
  std::function<void()> run_;
  std::optional<DeviceBuffer>
      evicting_;  ///< two halves, each larger than the device's cache; set if operands are evicted
  std::map<int, std::unique_ptr<RecordedWork>> recorded_;  ///< by number of runs; null: it cannot be
  std::map<int, std::function<void()>> batches_;
};

}  // namespace collage
