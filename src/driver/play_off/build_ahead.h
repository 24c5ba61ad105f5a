// build_ahead.h: compiles what a play-off is about to build, on another processor.
#pragma once

#include <memory>
#include <vector>

#include "driver/play_off/play_off.h"
#include "worker/worker.h"

namespace collage {

/// Compiles the partitions of contenders into the store of a play-off, from the last one on, while its worker builds
/// from the first one on: they meet in the middle. Failures are left to the worker. Nothing is timed meanwhile.
/// Ends its process when it is destroyed.
class BuildAhead {
 public:
  /// Begins at once, in a process of its own, with `contenders`, numbers of `modules`. Does nothing without a store, or
  /// where this process may use one processor only. `modules` and `options` must outlive it.
  BuildAhead(const std::vector<ContenderModule>& modules, std::vector<int> contenders, const PlayOffOptions& options);

 private:
  std::unique_ptr<Worker> worker_;
};

}  // namespace collage
