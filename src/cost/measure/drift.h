// drift.h: whether the machine is as fast as usual.
//
// A small fixed kernel (products that stay in registers, then a read of memory that fits a core's own cache; some 30 us
// on every thread of the pool) is timed before and after each measurement. Its time divided by its usual time in this
// process is the drift: above 1 when other work, a lower clock or a neighbour slows the machine down. The usual time is
// the lower quartile of the latest readings, so a machine that stays slow becomes the norm.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "cost/measure/timing.h"

namespace collage {

/// Returns the fixed kernel's time now on the pool's threads, in seconds: the median of a few runs.
double ReferenceKernelSeconds();

/// The latest readings, in seconds; plain, since processes share them.
struct DriftReadings {
  static constexpr size_t kKept = 64;
  uint64_t count = 0;  ///< ever taken; the last `kKept` are kept
  std::array<double, kKept> latest{};
};

/// Makes the readings of this process and of all workers that it forks later one common list. To be called before a
/// worker that measures is forked.
void ShareDriftReadings();

class DriftWatch {
 public:
  /// `read` gives a reading in seconds; `readings` are others' too, and outlive this. Null: its own.
  explicit DriftWatch(std::function<double()> read = ReferenceKernelSeconds, DriftReadings* readings = nullptr);

  /// Takes a reading and returns it by what is usual.
  double Read();

 private:
  std::function<double()> read_;
  std::unique_ptr<DriftReadings> own_;
  DriftReadings* readings_;
};

/// The watch for the pool's present number of threads.
DriftWatch& ThisDriftWatch();

struct Undisturbed {
  Samples samples;
  double drift = 1;  ///< the larger one of before and after
};

/// Calls `time` with the machine watched. When it was held up by more than 10 %, `time` is called again, three times
/// in all, and the calmest one counts: a machine that is busy for long is not waited for.
Undisturbed TimeUndisturbed(const std::function<Samples()>& time, DriftWatch& watch);

}  // namespace collage
