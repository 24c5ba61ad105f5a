// tuning_database.h: what was measured, kept between runs: in one SQLite file that several processes may share, or on a
// PostgreSQL server that a team shares.
//
// Times are in the table `timing`; lists of schedules, comparisons and play-offs have a table for each kind of key,
// compilations one more. Every record is committed at once; a process that is killed loses nothing finished.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/database/sql_connection.h"
#include "cost/database/tuning_record.h"

namespace collage {

/// Counts of the database, for reports.
struct TuningStats {
  int64_t records = 0;
  int64_t failures = 0;
  int64_t bytes = 0;
  std::map<std::string, int64_t> by_toolchain;  ///< without records that concern none
  std::map<std::string, int64_t> by_kind;       ///< kind of key
};

/// Records that `Collect` removes; fields that are not set remove nothing.
struct GarbageRule {
  /// Removes records of other versions of these toolchains, on `machine` only, which no compilation will ask for again.
  std::map<std::string, std::string> versions;
  std::string machine;
  std::string before;     ///< records measured before this UTC time
  bool failures = false;  ///< records of failures, so that they are tried again
};

/// The result of `TuningDatabase::Check`.
struct StoreCheck {
  int64_t records = 0;                ///< 0 in a damaged store
  std::vector<std::string> problems;  ///< damage of the store, and records that make no sense
};

/// The store. Not thread-safe; any number of processes may open one place.
class TuningDatabase {
 public:
  /// Opens or creates `place`: a file (its folder is made), or a "postgresql://…" URL. A damaged file is set aside as
  /// PATH.corrupt-N and a new one is begun; a store of an older schema is brought up to date. `notices()` reports a
  /// damaged file, and records that cannot be brought up to date. Throws kResource when the store cannot be reached or
  /// written, kInput when it is of a newer schema.
  explicit TuningDatabase(std::string place);

  /// Opens a store that exists. Throws kInput when there is none, else as the constructor does.
  static TuningDatabase OpenExisting(const std::string& place);

  /// Opens a store that exists to be read, as reports do: no file is changed, moved or created. A file of an older
  /// schema is brought up to date in memory only; a server as when it is written. Throws kCorrupt for a damaged file,
  /// kInput when there is none, else as the constructor does.
  static TuningDatabase ForReading(const std::string& place);

  /// Reads all of a store that exists, and changes nothing. Throws as `ForReading`, except for damage.
  static StoreCheck Check(const std::string& place);

  /// $COLLAGE_DATABASE, else ~/.cache/collage/tuning.db (XDG_CACHE_HOME is honoured).
  static std::string DefaultPlace();
  /// The schema that stores have after they are opened.
  static int SchemaVersion();

  std::optional<TuningRecord> Find(const TuningKey& key);
  std::optional<ResultRecord> Find(const ResultKey& key);
  /// Adds or replaces, durable on return. Throws kResource when the disk is full or the store cannot be written.
  void Put(const TuningKey& key, const TuningRecord& record);
  void Put(const ResultKey& key, const ResultRecord& record);
  /// Adds, or replaces what is older. Whether anything changed.
  bool PutIfNewer(const TuningEntry& entry);
  /// All entries, by table and text of the key.
  void ForEach(const std::function<void(const TuningEntry&)>& visit);
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
  TuningDatabase() = default;
  bool TryOpenFile(const std::string& path);
  void Migrate();
  void TranslateMeasurements();

  std::string place_;
  std::vector<std::string> notices_;
  std::unique_ptr<SqlConnection> sql_;
};

}  // namespace collage
