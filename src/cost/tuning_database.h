// tuning_database.h: what was measured, kept between runs in one SQLite file that several processes may share.
//
// A record's key holds everything that its time depends on, so a hit is valid by construction: the structure of the
// partition (operators, types, attributes, shapes of constants, never weights), the layouts at its boundary, toolchain
// and version, machine, threads. Every record is committed at once; a process that is killed loses nothing finished.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace collage {

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
  double p50 = 0;
  double p90 = 0;
  int64_t num_samples = 0;
  double max_error = 0;  ///< largest |result - reference|, relative to the largest |reference|
  std::string label;     ///< the operators, for people
  std::string reason;    ///< when not ok: what failed
};

/// Counts of the database, for reports.
struct TuningStats {
  int64_t records = 0;
  int64_t failures = 0;
  int64_t bytes = 0;
  std::map<std::string, int64_t> by_toolchain;
};

/// The store. Not thread-safe; any number of processes may open one file.
class TuningDatabase {
 public:
  /// Opens or creates `path` and its folder. A damaged file is set aside as PATH.corrupt-N, reported by `notices()`,
  /// and a new one is begun. Throws kResource when the file cannot be written, kCorrupt when it is of a newer schema.
  explicit TuningDatabase(std::filesystem::path path);
  ~TuningDatabase();
  TuningDatabase(const TuningDatabase&) = delete;
  TuningDatabase& operator=(const TuningDatabase&) = delete;

  /// $COLLAGE_DATABASE, else ~/.cache/collage/tuning.db (XDG_CACHE_HOME is honoured).
  static std::filesystem::path DefaultPath();

  std::optional<TuningRecord> Find(const TuningKey& key);
  /// Adds or replaces, durable on return. Throws kResource when the disk is full or the file cannot be written.
  void Put(const TuningKey& key, const TuningRecord& record);
  TuningStats Stats();
  const std::filesystem::path& path() const { return path_; }
  /// What happened on opening that the user should know; empty mostly.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  class Statement;
  bool TryOpen();
  void Close();
  void Execute(const char* sql);
  std::string Text(const char* sql);
  [[noreturn]] void Fail(int code, const std::string& doing);

  std::filesystem::path path_;
  std::vector<std::string> notices_;
  sqlite3* handle_ = nullptr;
};

}  // namespace collage
