// recorded_work.h: devices that do what they were asked for once again as a whole, with less effort than step by step:
// CUDA's graphs.
#pragma once

#include <functional>
#include <memory>

namespace collage {

/// Kernels and copies within a device, with the addresses that they had when they were recorded.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// Asks for all of it. As `Kernel::Run`, this may return before it is done.
  virtual void Run() = 0;
};

/// Base class of a `Device` that records.
class RecordsWork {
 public:
  virtual ~RecordsWork() = default;
  /// Records all that `work` asks the device for, without doing it. Null if some of it cannot be recorded: then the
  /// caller does it as it is.
  virtual std::unique_ptr<RecordedWork> Record(const std::function<void()>& work) = 0;
};

}  // namespace collage
