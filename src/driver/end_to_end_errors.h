// end_to_end_errors.h: the errors of whole models, by cover.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "cost/database/tuning_database.h"
#include "driver/play_off/play_off.h"
#include "worker/worker.h"

namespace collage {

/// Finds out how far the results of executables are from the reference evaluation of their model. All are built and run
/// in one worker, which evaluates the model once and compiles equal partitions once. Errors are kept in the database,
/// by the model's structure and constants.
class EndToEndErrors {
 public:
  /// Threads, limits and versions are those of `options`. All but these must outlive this.
  EndToEndErrors(const IRModule& module, const std::vector<const Toolchain*>& toolchains, TuningDatabase& database,
                 const std::string& machine, const PlayOffOptions& options);
  ~EndToEndErrors();

  /// The largest error of the executable that `partitioning` (partitioning_json.h) describes, as a share of the largest
  /// element of its result; infinity when it cannot be built and run, or gives no numbers where there are some.
  double Of(const std::string& partitioning);

  /// How many were built; others were known.
  int64_t num_built() const { return num_built_; }
  /// Seconds that building and running them took.
  double seconds() const { return seconds_; }

 private:
  /// State of the child process; made by its first request.
  struct Child;

  std::string Answer(const std::string& partitioning, const SendProgress& progress);
  TuningRecord Build(const std::string& partitioning);
  TuningKey KeyOf(const std::string& partitioning);

  const IRModule& module_;
  const std::vector<const Toolchain*>& toolchains_;
  TuningDatabase& database_;
  std::string machine_;
  std::string versions_;
  int num_threads_;
  CompiledStore* compiled_;
  std::vector<std::vector<Tensor>> check_inputs_;
  std::string model_digest_;  ///< constants and inputs included; found when it is first wanted
  std::unique_ptr<Child> child_;
  Worker worker_;
  int64_t num_built_ = 0;
  double seconds_ = 0;
};

}  // namespace collage
