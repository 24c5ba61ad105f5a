// play_off.h: the last word is end to end. Covers are built whole and timed interleaved, in a worker; the fastest is
// written. An additive cost model may choose wrongly, this cannot choose worse than the best single toolchain.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/module.h"
#include "collage/runtime/executable.h"
#include "cost/database/tuning_database.h"
#include "worker/worker.h"

namespace collage {

/// A partitioned module that takes part.
struct Entrant {
  std::string name;
  bool is_single = false;
  bool is_extra = false;
  IRModule module;  ///< partitioned and typed
  double estimated_seconds = 0;
  std::string partitioning;  ///< the choice as text (partitioning_json.h)
};

struct PlayOffOptions {
  int num_threads = 1;
  WorkerLimits limits;
  double first_seconds = 12;  ///< spent on timed rounds of all, about
  double final_seconds = 24;  ///< spent on timed rounds of the finalists, again where these do not tell them apart
  int min_rounds = 11;
  int max_rounds = 400;
  std::filesystem::path output;     ///< where the winner's executable is written
  std::string versions;             ///< of the toolchains: timings of others are not taken for theirs
  std::string metadata_json;        ///< goes into the executable
  std::optional<double> max_error;  ///< CompileOptions::max_error
  /// Inputs to check on beside random ones, each in the order of the parameters.
  std::vector<std::vector<Tensor>> check_inputs;
};

/// Identifies inputs by their values; empty where there are none.
std::string DigestOf(const std::vector<std::vector<Tensor>>& inputs);

struct PlayOffResult {
  std::vector<Contestant> contestants;  ///< in the order of the entrants
  int winner = -1;
  int64_t output_bytes = 0;
  PlayOffSeconds seconds;
};

/// Seconds that a contestant takes when `other` takes its p50: by the rounds in which both ran, since their p50s may be
/// of different ones, and the machine of different speed in them.
double SecondsBeside(const Contestant& contestant, const Contestant& other);

/// Indices of the contestants without a failure, the best first; the final decides before the first rounds do. Of those
/// as good as the fastest, the one of fewest toolchains comes first, then of those of least priority.
std::vector<size_t> Ranked(std::span<const Contestant> contestants);

/// Builds, checks (against the `Reference` of `original`), times and writes. An entrant that cannot be built,
/// crashes or computes something wrong is out, with its failure noted; throws kUnsupported when none is left.
///
/// When `database` knows the timings of exactly these entrants from an earlier run, they are used: only the winner is
/// then built, checked and written. Where toolchains cannot be in one process, there is a play-off for each
/// field that can (heats.h).
PlayOffResult RunPlayOff(const IRModule& original, const std::vector<Entrant>& entrants, TuningDatabase& database,
                         const std::string& machine, const PlayOffOptions& options, CompileProgress* progress);

}  // namespace collage
