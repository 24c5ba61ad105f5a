// runner.h: where measurements are made: in a child process of this one, or on other machines.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cost/runner/measure_request.h"
#include "worker/worker.h"

namespace collage {

/// Measures what requests ask for.
class Runner {
 public:
  /// Told as soon as the request at `index` has its answer; false when the others are no longer wanted.
  using OnAnswer = std::function<bool(size_t index, const MeasureAnswer& answer)>;

  virtual ~Runner() = default;

  /// Whether requests must contain their partitions, because the worker does not share this process's memory.
  virtual bool needs_whole_partitions() const { return false; }
  /// How many requests it answers in about the time of one, as far as it knows.
  virtual int num_at_once() const { return 1; }
  /// Answers requests, in any order, until there are none or `on_answer` says so. A request that crashed, hung or
  /// failed is answered by a record with the reason.
  virtual void Run(const std::vector<MeasureRequest>& requests, const OnAnswer& on_answer) = 0;
  /// Ends processes that wait for requests; the next request starts them again.
  virtual void Rest() {}
};

/// One at a time, in a worker forked from this process, which shares `candidates` and keeps what it compiles in
/// `compiled` (or null).
std::unique_ptr<Runner> MakeLocalRunner(const CandidateSource& candidates, const WorkerLimits& limits,
                                        CompiledStore* compiled = nullptr);

/// For whom measurements are made.
struct RunnerContext {
  const CandidateSource& candidates;
  WorkerLimits limits;
  int num_threads = 1;
  /// Versions of the selected toolchains, as in tuning keys: machines with other versions are not used.
  std::map<std::string, std::string> versions;
  std::string python;  ///< the interpreter that speaks to Ray; empty = see docs/many-machines.md
  std::function<void(const std::string&)> on_warning;  ///< may be empty
  CompiledStore* compiled = nullptr;                   ///< store of a local runner's compiled partitions
};

/// Throws kInput for a text that MakeRunner would refuse.
void CheckRunner(const std::string& text);

/// "local", or a Ray cluster: "ray" (the one that runs on this machine), "ray:HOST:PORT" (one that this machine is part
/// of), "ray://HOST:PORT" (a Ray client's). Throws kInput for any other text, kUnavailable when Collage's helper for
/// Ray is not installed. The cluster is spoken to when there is something to measure.
std::unique_ptr<Runner> MakeRunner(const std::string& text, RunnerContext context);

}  // namespace collage
