// runner.h: where measurements are made: in a child process of this one, or on other machines.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cost/measure_request.h"
#include "cost/worker.h"

namespace collage {

/// Measures what requests (measure_request.h) ask for.
class Runner {
 public:
  /// Told as soon as the request at `index` has its answer; false when the others are no longer wanted.
  using OnAnswer = std::function<bool(size_t index, const TuningRecord& record)>;

  virtual ~Runner() = default;

  /// Whether requests must hold their partitions, because whoever measures does not share this process's memory.
  virtual bool needs_whole_partitions() const { return false; }
  /// Answers requests, in any order, until there are none or `on_answer` says so. What crashed, hung or failed is
  /// answered by a record with the reason.
  virtual void Run(const std::vector<std::string>& requests, const OnAnswer& on_answer) = 0;
};

/// One at a time, in a worker forked from this process, which sees what `find` finds.
std::unique_ptr<Runner> MakeLocalRunner(FindPartition find, const WorkerLimits& limits);

}  // namespace collage
