// device_stretches.h: steps of a plan that one device does one after the other, which it can do as a whole.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/runtime/recorded_work.h"

namespace collage {

/// Runs the steps of a plan in order. If several follow each other on a device that records (recorded_work.h), the
/// first run does them one by one, since kernels may allocate then, the second records them, and further ones repeat
/// that.
class DeviceStretches {
 public:
  /// Throws as GetDevice for the devices that hold values of `plan`.
  explicit DeviceStretches(const ExecutionPlan& plan);

  /// Calls `run_step` for steps that are not repeated as a part of a stretch.
  void Run(const std::function<void(size_t step)>& run_step);
  /// `step` reads or writes somewhere else from now on.
  void Forget(size_t step);

 private:
  struct Stretch {
    size_t begin = 0, end = 0;      ///< steps
    RecordsWork* device = nullptr;  ///< null: nobody records
    int num_runs = 0;
    std::unique_ptr<RecordedWork> recorded;
  };
  static void Run(Stretch& stretch, const std::function<void(size_t step)>& run_step);

  std::vector<Stretch> stretches_;  ///< all steps, in order
};

}  // namespace collage
