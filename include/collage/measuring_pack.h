// measuring_pack.h: measures the candidates of models on a machine that compiles nothing and has the models not
// (docs/many-machines.md): a pack is made on one machine, measured on another, and its costs come back in a tuning
// database, by which CompileOptions::machine compiles.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "collage/compile.h"

namespace collage {

/// A model, or a static graph of one, in a pack.
struct PackedModelReport {
  std::string name;
  int64_t num_candidates = 0;   ///< distinct ones
  int64_t num_conversions = 0;  ///< changes of layouts
};

/// The play-off of a model, or of a static graph of one, in a pack.
struct PackedPlayOffReport {
  std::string model;
  int64_t num_contenders = 0;
};

struct PackReport {
  std::filesystem::path output;
  int64_t output_bytes = 0;
  int num_threads = 0;
  std::vector<std::string> toolchains;  ///< names or configurations
  std::vector<PackedModelReport> models;
  std::vector<PackedPlayOffReport> play_offs;
  int64_t num_partitions = 0;  ///< distinct ones of all models
  int64_t num_compiled = 0;    ///< ways to compile them that were compiled
  int64_t num_schedules = 0;   ///< how many of these are schedules near the toolchain's own choice
  int64_t num_declined = 0;    ///< declined or failed
  std::string first_failure;
  /// Toolchains whose code is for this kind of processor only.
  std::vector<std::string> for_this_processor;
  double seconds = 0;
};

/// Finds the candidates of `models`, as a compilation by `options` would, compiles all of them and writes them to
/// `output`. Devices and libraries that run them need not be here; nothing is run. For each partition, at most
/// `max_schedules` schedules near its toolchain's own choice are compiled beside it. Throws Error.
///
/// With CompileOptions::machine, whose costs are known, the pack has the covers that a compilation would choose among
/// in place of candidates, for a play-off there; `max_schedules` is 0.
PackReport PackModels(const std::vector<std::filesystem::path>& models, const CompileOptions& options,
                      int max_schedules, const std::filesystem::path& output);

struct MeasurePackOptions {
  /// Tuning database that gets the costs: a file or a "postgresql://…" URL; empty = as CompileOptions::database.
  std::string database;
  /// By which compilations call this machine; empty: its fingerprint.
  std::string name;
  /// Ends measuring as if it were interrupted.
  double seconds = std::numeric_limits<double>::infinity();
  std::function<bool()> should_stop;  ///< asked before each measurement; may be empty
  double candidate_timeout_seconds = 60;
  int64_t candidate_memory_bytes = int64_t{12} << 30;
  CompileProgress* progress = nullptr;
};

struct MeasuredModelReport {
  std::string name;
  int64_t measured = 0;       ///< costs that were measured now
  int64_t from_database = 0;  ///< costs that the database had
  int64_t failed = 0;         ///< candidates among both that cannot be run
  int64_t left = 0;           ///< costs that there was no time for
  int64_t left_out = 0;       ///< candidates of toolchains that cannot be measured here
};

/// The play-off of a model, or of a static graph of one.
struct MeasuredPlayOffReport {
  std::string model;
  std::vector<Contender> contenders;  ///< in the order of the pack
  std::string winner;                 ///< its name; empty where there is none
  bool is_known = false;              ///< whether the database had its result
  std::string failure;                ///< why there is no winner; empty where there was no time for it, too
};

struct MeasurePackReport {
  std::string machine;  ///< the name for CompileOptions::machine
  std::string cpu;
  std::string database;
  int num_threads = 0;
  std::vector<std::string> toolchains;  ///< measured ones
  std::vector<std::string> left_out;    ///< the others, with reasons
  std::vector<MeasuredModelReport> models;
  std::vector<MeasuredPlayOffReport> play_offs;
  int64_t trials = 0;  ///< schedules that were tried
  double seconds = 0;
  bool complete = false;  ///< whether nothing is left that there was no time for
};

/// Measures what is in the pack and not in the database, the costs first that matter most, and plays off the contenders
/// that are in it: the results decide in compilations for this machine. Each is in the database
/// before the next is measured: interrupted, it goes on where it stopped. Throws kUnavailable when no toolchain of the
/// pack can be measured here, kCorrupt for a damaged pack.
MeasurePackReport MeasurePack(const std::filesystem::path& pack, const MeasurePackOptions& options);

}  // namespace collage
