// compile_report.h: the results of a compilation. docs/reports.md tells how to add a fact.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/toolchain_report.h"

namespace collage {

struct GraphExplanation;  // src/driver/explanation/graph_explanation.h

/// One contender of the play-off.
struct Contender {
  std::string name;              ///< "collage", "collage-2", …, or a toolchain's name for its single cover
  bool is_single = false;        ///< a single-toolchain cover
  bool is_extra = false;         ///< chosen by no search: one of all covers there are, or given by the user
  double estimated_seconds = 0;  ///< sum of partitions and penalties
  double p50 = 0;                ///< seconds, measured whole, interleaved with the others
  double p90 = 0;
  double minimum = 0;
  int samples = 0;
  /// Score: the median over rounds of its time divided by the mean time of the round.
  double relative = 0;
  double first_relative = 0;         ///< its score in the first rounds, in which all contenders run
  bool is_finalist = false;          ///< so near the fastest in the first rounds that the final decided
  std::vector<double> first_rounds;  ///< seconds of each run in the first rounds
  std::vector<double> final_rounds;  ///< seconds of each run in the final, if there was one
  double max_error = 0;  ///< against the reference evaluation of the whole model, relative to its largest result
  std::map<std::string, int> partitions;  ///< by toolchain
  std::string failure;                    ///< why it could not take part; empty when it did
};

/// How much of the best mix may be computed in a lower precision, if CompileOptions::max_error bounds its error. Errors
/// are end to end, each as a share of the largest element of its result.
struct BoundedMix {
  double allowed = 0;
  double best_error = 0;    ///< the best mix's ("collage"); infinity if it cannot be run
  int best_partitions = 0;  ///< its partitions in a lower precision
  double error = 0;         ///< error of the best mix within the bound: that one, or "collage-bounded"
  int partitions = 0;       ///< its partitions in a lower precision; 0: none was found, or none gains
  int64_t num_built = 0;    ///< mixes whose error was measured; others were known
  double seconds = 0;       ///< time to build and run them
};

/// A bound on the gain of a perfect search: by the sums of costs, no cover of the candidates is faster by more than
/// `gap`. Candidates that were not measured count with a lower bound of their cost; if the budget was spent, they do
/// not count at all.
struct Certificate {
  bool is_exact = false;            ///< the search cut nothing off
  int64_t num_dropped = 0;          ///< states that the search dropped
  std::vector<std::string> capped;  ///< toolchains whose rules found more candidates than they may return
  double cover_seconds = 0;         ///< cost of the best cover found
  double least_seconds = 0;         ///< no cover costs less
  /// As a fraction of `cover_seconds`.
  double gap() const { return cover_seconds > least_seconds ? 1 - least_seconds / cover_seconds : 0; }
};

/// Another way to compute the nodes of one partition, while all others of its cover stay.
struct PartitionAlternative {
  std::map<std::string, int> partitions;  ///< by toolchain
  double extra_seconds = 0;               ///< cost of the cover with it, minus that of the cover
  bool is_bound = false;                  ///< it costs at least that: something in it was never measured
};

/// A partition of the best mix, and what else could have computed its nodes. All by costs; nothing is measured for it.
struct PartitionChoice {
  std::string operators;   ///< "nn.conv2d+nn.relu"
  int num_operators = 0;   ///< nodes that it covers
  std::string first_node;  ///< the first one's place in the model; may be empty
  std::string toolchain;
  double seconds = 0;  ///< cost
  double share = 0;    ///< cost as a share of the mix's
  /// The cheapest way of each toolchain alone, and of several together if that is cheaper. Known costs come first, then
  /// bounds; the lesser before the greater.
  std::vector<PartitionAlternative> alternatives;
  std::map<std::string, std::string> refusals;  ///< why a toolchain has no other way, by its name
};

/// Parts of a play-off's time.
struct PlayOffSeconds {
  double check = 0;   ///< the reference evaluation, and the runs that are compared with it
  double build = 0;   ///< from partitioned modules to loaded kernels
  double timing = 0;  ///< interleaved runs
  double write = 0;   ///< the executable, onto the disk
};

/// Results of the search for schedules.
struct TuningReport {
  int64_t partitions = 0;    ///< different ones whose schedules were searched
  int64_t faster = 0;        ///< partitions that got another schedule
  int64_t trials = 0;        ///< measured
  int64_t known_trials = 0;  ///< answered from the database
  double seconds = 0;
  double gain = 0;            ///< share of the time of the covers' partitions that faster schedules save
  bool budget_spent = false;  ///< there was more to try
  double trials_per_minute() const { return seconds > 0 ? 60 * static_cast<double>(trials) / seconds : 0; }
};

/// Calls of one operator in a program that run by reference evaluation, which is slow.
struct EvaluatedOperator {
  std::string op;
  int64_t count = 0;
  std::string node;         ///< first node of the model; may be empty
  std::string reason;       ///< why there is no kernel for the first one
  bool is_product = false;  ///< a contraction or convolution
};

/// The results of one compilation, which the command line prints and `--json` writes.
struct CompileReport {
  std::string model;
  int64_t num_operators = 0;
  int64_t num_parameters = 0;
  std::string machine;
  int num_threads = 0;
  std::vector<ToolchainReport> toolchains;
  /// Toolchains that take part in a lower precision because of CompileOptions::precision.
  std::vector<std::string> precision_variants;
  std::string no_precision_variants;  ///< why there are none, where they were asked for
  int64_t num_candidates = 0;
  int64_t num_variants = 0;  ///< candidates times layouts at their boundary
  int64_t num_distinct = 0;  ///< variants that differ from all others
  int64_t num_measured = 0;
  int64_t num_remeasured = 0;  ///< further measurements, of candidates that cost nearly the same
  int64_t num_from_database = 0;
  int64_t num_failed = 0;
  int64_t num_below_bound = 0;  ///< costs below their supposed lower bound
  bool budget_spent = false;
  /// Executables that were written while the search went on, and whether CompileOptions::should_stop ended it.
  int64_t num_checkpoints = 0;
  bool is_stopped = false;
  int64_t num_states = 0;  ///< states of the search
  TuningReport tuning;
  std::optional<Certificate> certificate;  ///< the best mix's; set if there was a search
  std::vector<PartitionChoice> choices;    ///< the best mix's most expensive partitions, in that order
  std::optional<BoundedMix> bounded;       ///< set if the best mix is in a lower precision with an error bound
  std::vector<Contender> contenders;
  std::string winner;
  /// RFC 0.81, Drawbacks: measured minus estimated latency of the best Collage cover.
  double additive_error_seconds = 0;
  /// RFC 0.81, Drawbacks: the winner's latency minus that of each partitioning without a search, in seconds, by name:
  /// each toolchain alone and its `partition_for`, what FuseOps makes of native kernels, and partitionings of the user.
  /// Equal ones have been timed once. Not above 0 but for ties.
  std::map<std::string, double> apparent_loss_seconds;
  /// RFC 0.81, Drawbacks: the latency of the best cover that a search chose, minus that of the best of all covers,
  /// where these are few enough to be tried. Not below 0 but for noise.
  std::optional<double> optimality_loss_seconds;
  std::string optimality_loss_unknown;  ///< why not, where it was wanted; empty when it is known
  int64_t num_covers = 0;               ///< all there are; 0 when they are too many, or were not counted
  std::filesystem::path output;
  int64_t output_bytes = 0;
  double import_seconds = 0;
  double search_seconds = 0;
  double play_off_seconds = 0;
  PlayOffSeconds play_off_parts;
  double total_seconds = 0;
  /// Failures by kind, with how often and one example: the first of each kind is worth a line.
  std::map<std::string, std::pair<int64_t, std::string>> failures;
  /// For a program: the sizes of CompileOptions::tune_at, each a plan of its own: "batch=1 sequence=16".
  std::vector<std::string> searched_sizes;
  /// For a program: the input shapes at which it was run as a whole and was right, "x=2x33"; the largest error of its
  /// results, relative to the largest element of each; and the reason if it was not run.
  std::vector<std::string> verified_sizes;
  double verified_error = 0;
  std::string not_verified;
  /// Reports of a program's distinct static graphs, each compiled as a model of its own; the fields above are sums, and
  /// there is no play-off of the whole. Empty for models without control flow.
  std::vector<CompileReport> regions;
  /// For a program with dynamic shapes: the part of each toolchain that is available, those without one included.
  std::vector<ToolchainPart> parts;
  /// For a program: operators that no kernel computes, except those that only move a few numbers.
  std::vector<EvaluatedOperator> evaluated;
  /// The explanation of the result; null for programs, whose regions have their own, and where none is wanted.
  std::shared_ptr<const GraphExplanation> explanation;
};

}  // namespace collage
