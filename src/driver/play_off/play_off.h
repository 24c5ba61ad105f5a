// play_off.h: the final comparison is end to end. A worker builds whole covers and times them interleaved; then they
// are ranked. An additive cost model may choose wrongly. A play-off cannot choose worse than the best single toolchain.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/module.h"
#include "collage/support/result.h"
#include "cost/database/tuning_database.h"
#include "driver/play_off/ranking.h"
#include "driver/play_off/whole_model_check.h"
#include "lowering/compiled_store.h"
#include "worker/worker.h"

namespace collage {

/// Names of contenders that the user gave, beside what a search found, begin so; then comes the file's name.
inline constexpr const char* kGivenPrefix = "given ";

/// A partitioned module that takes part.
struct ContenderModule {
  std::string name;
  bool is_single = false;
  bool is_extra = false;
  IRModule module;  ///< partitioned and typed
  double estimated_seconds = 0;
  std::string partitioning;  ///< the choice as text (partitioning_json.h)
  /// Names of the partitionings without a search that it is: the apparent loss is against these.
  std::vector<std::string> baselines = {};
  bool is_costed = false;  ///< whether `estimated_seconds` adds up costs that are all known
};

struct PlayOffOptions {
  int num_threads = 1;
  WorkerLimits limits;
  double first_seconds = 5;  ///< at most spent on timed rounds of all, about
  double final_seconds = 5;  ///< at most spent on timed rounds of the finalists, about
  int min_rounds = 6;        ///< of a stage: as many have an interval of the median
  int max_rounds = 400;
  std::string versions;              ///< versions of the toolchains: timings of other versions do not count
  std::string metadata_json = "{}";  ///< goes into the executable
  std::optional<double> max_error;   ///< CompileOptions::max_error
  /// Inputs to check on beside random ones, each in the order of the parameters.
  std::vector<std::vector<Tensor>> check_inputs;
  /// False: contenders are for another machine, and only the winner is built. Results of a play-off on that machine
  /// decide where the database has them, else estimates.
  bool runs = true;
  /// Whether the winner's partitions, if nobody has measured them, are tried by themselves, too (partition_trials.h).
  bool tries_partitions = true;
  CompiledStore* compiled = nullptr;  ///< compiled partitions to reuse; may be null, must outlive the result
  /// Checks contenders (EvaluateReference); may be null if nothing runs.
  std::shared_ptr<WholeModelCheck> check;
  /// Asked now and then: true ends it by PlayOffStopped. May be empty.
  std::function<bool()> should_stop;
};

/// Thrown where PlayOffOptions::should_stop ended a play-off.
struct PlayOffStopped {};

/// Versions of toolchains by name, as PlayOffOptions::versions.
std::string VersionsText(const std::map<std::string, std::string>& versions);
/// Limits of a play-off's worker, those of a candidate's given.
WorkerLimits PlayOffLimits(WorkerLimits limits);

/// Identifies inputs by their values; empty where there are none.
std::string DigestOf(const std::vector<std::vector<Tensor>>& inputs);

/// An executable in the memory of the worker that built it.
class BuiltExecutable {
 public:
  virtual ~BuiltExecutable() = default;
  /// Has the worker serialise it into `file`, which is replaced. A reason when it cannot be written.
  virtual Result<void> SerialiseTo(const std::filesystem::path& file) = 0;
};

/// Returns the check of a model whose play-off has these `options`. Evaluates the reference in this process, by no code
/// but Collage's own, so that all workers that are forked from it have it.
std::shared_ptr<WholeModelCheck> EvaluateReference(const IRModule& original, const PlayOffOptions& options,
                                                   CompileProgress* progress);

struct PlayOffResult {
  std::vector<Contender> contenders;  ///< in the order of the modules
  int winner = -1;
  std::unique_ptr<BuiltExecutable> executable;  ///< the winner's
  bool is_estimated = false;                    ///< no contender was run: the winner has the least estimate
  PlayOffSeconds seconds;                       ///< `write` is 0: nothing is written here
};

/// Builds, checks (against the `Reference` of `original`), times and ranks. A contender that cannot be built, crashes
/// or computes something wrong is disqualified, with its failure noted; throws kUnsupported when none is left.
///
/// When `database` knows the timings of exactly these contenders from an earlier run, they are used: only the winner is
/// then built and checked. If toolchains cannot be in one process, each compatibility group has a play-off of its
/// own (compatibility_groups.h).
PlayOffResult RunPlayOff(const IRModule& original, const std::vector<ContenderModule>& modules,
                         TuningDatabase& database, const std::string& machine, const PlayOffOptions& options,
                         CompileProgress* progress);

}  // namespace collage
