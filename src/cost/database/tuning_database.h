// tuning_database.h: what was measured, kept between runs: in one SQLite file that several processes may share, or on a
// PostgreSQL server that a team shares.
//
// A record's key holds everything that its time depends on, so a hit is valid by construction: the structure of the
// partition (operators, types, attributes, shapes of constants, never weights), the layouts at its boundary, toolchain
// and version, machine, threads. Every record is committed at once; a process that is killed loses nothing finished.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/database/sql_connection.h"

namespace collage {

/// A time as records have it: UTC, "2026-01-31 23:59:59".
std::string UtcText(std::time_t time);

/// Identifies one measurement.
struct TuningKey {
  std::string workload;  ///< digest of the structure, or a description for what is not a partition
  std::string layouts;   ///< layouts of inputs and outputs, "pc:c"
  std::string toolchain;
  std::string version;  ///< the toolchain's
  std::string machine;  ///< hardware fingerprint
  int num_threads = 1;

  auto operator<=>(const TuningKey&) const = default;
};

/// One measurement: quantiles of the samples in seconds, or why there are none.
struct TuningRecord {
  bool ok = false;
  bool is_skipped = false;  ///< neither measured nor failed: there was no time; never stored
  double minimum = 0;
  double p10 = 0;  ///< this, p25, p75, p99: 0 = not known, as in records of older versions
  double p25 = 0;
  double p50 = 0;
  double p75 = 0;
  double p90 = 0;
  double p99 = 0;
  int64_t num_samples = 0;
  double half_width = 0;    ///< half the width of the 95 % interval of its percentile, seconds; 0 = not known
  double drift = 0;         ///< how much slower than usual the machine was, as a ratio; 0 = not known
  double max_error = 0;     ///< largest |result - reference|, relative to the largest |reference|
  std::string label;        ///< the operators, for people
  std::string reason;       ///< when not ok: what failed
  std::string schedule;     ///< schedule (PartitionRequest::schedule); empty: the toolchain's own choice
  std::string measured_at;  ///< UTC, "2026-01-31 23:59:59"; empty = now

  /// Seconds at `fraction`, 0 <= fraction <= 1, linear between the quantiles that are known; beyond the last of them
  /// it.
  double Quantile(double fraction) const;
};

/// How one compilation ended: whether sums of partitions are honest is seen over many of them (RFC 0.81, Drawbacks).
struct CompilationRecord {
  std::string model;
  std::string machine;
  int num_threads = 1;
  std::string versions;  ///< versions of the toolchains that took part
  std::string winner;
  double seconds = 0;         ///< p50 of the winner
  double additive_error = 0;  ///< measured minus estimated seconds of the best mix; 0 when there is none
  std::string apparent_loss;  ///< JSON: toolchain → winner's seconds minus those of its own partitioning
  std::string compiled_at;    ///< UTC; empty = now
  /// Seconds of the best cover that a search chose minus those of the best of all; nothing: not all were tried, as they
  /// were too many, or by a version that did not note it.
  std::optional<double> optimality_loss;
};

/// Counts of the database, for reports.
struct TuningStats {
  int64_t records = 0;
  int64_t failures = 0;
  int64_t bytes = 0;
  std::map<std::string, int64_t> by_toolchain;
};

/// Records that `Collect` removes; fields that are not set remove nothing.
struct GarbageRule {
  /// Removes records of other versions of these toolchains, on `machine` only, which no compilation will ask for again.
  std::map<std::string, std::string> versions;
  std::string machine;
  std::string before;     ///< records measured before this UTC time
  bool failures = false;  ///< records of failures, so that they are tried again
};

/// The store. Not thread-safe; any number of processes may open one place.
class TuningDatabase {
 public:
  /// Opens or creates `place`: a file (its folder is made), or a "postgresql://…" URL. A damaged file is set aside as
  /// PATH.corrupt-N, reported by `notices()`, and a new one is begun. Throws kResource when it cannot be reached or
  /// written, kInput when it is of a newer schema.
  explicit TuningDatabase(std::string place);

  /// $COLLAGE_DATABASE, else ~/.cache/collage/tuning.db (XDG_CACHE_HOME is honoured).
  static std::string DefaultPlace();

  std::optional<TuningRecord> Find(const TuningKey& key);
  /// Adds or replaces, durable on return. Throws kResource when the disk is full or the store cannot be written.
  void Put(const TuningKey& key, const TuningRecord& record);
  /// Adds, or replaces what is older. Whether anything changed.
  bool PutIfNewer(const TuningKey& key, const TuningRecord& record);
  /// All records, by key.
  void ForEach(const std::function<void(const TuningKey&, const TuningRecord&)>& visit);
  /// How many records were removed.
  int64_t Collect(const GarbageRule& rule);
  void Put(const CompilationRecord& record);
  std::vector<CompilationRecord> Compilations();

  TuningStats Stats();
  /// Damage of the store, and records that make no sense; empty when all is well.
  std::vector<std::string> Verify();
  /// Path or URL, without a password.
  const std::string& place() const { return place_; }
  /// Events of opening that the user should know; mostly empty.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  bool TryOpenFile(const std::string& path);
  void Migrate();

  std::string place_;
  std::vector<std::string> notices_;
  std::unique_ptr<SqlConnection> sql_;
};

}  // namespace collage
