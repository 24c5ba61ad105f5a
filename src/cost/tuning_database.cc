// tuning_database.cc: the tuning database on SQLite in WAL mode.
#include "cost/tuning_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdlib>

#include "collage/support/error.h"

namespace collage {
namespace {

constexpr int kSchemaVersion = 1;
constexpr int kBusyTimeoutMs = 30'000;

constexpr const char* kSchema = R"(
  CREATE TABLE IF NOT EXISTS measurement (
    workload TEXT NOT NULL, layouts TEXT NOT NULL, toolchain TEXT NOT NULL, version TEXT NOT NULL,
    machine TEXT NOT NULL, num_threads INTEGER NOT NULL,
    ok INTEGER NOT NULL, minimum REAL, p50 REAL, p90 REAL, num_samples INTEGER, max_error REAL,
    label TEXT, reason TEXT, measured_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (workload, layouts, toolchain, version, machine, num_threads)
  ) WITHOUT ROWID;
)";

bool IsDamage(int code) { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB; }

}  // namespace

/// A prepared statement, finalised with its scope.
class TuningDatabase::Statement {
 public:
  Statement(TuningDatabase& database, const char* sql) : database_(database) {
    const int code = sqlite3_prepare_v2(database.handle_, sql, -1, &statement_, nullptr);
    if (code != SQLITE_OK) database.Fail(code, "prepare a statement for");
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Bind(double number) {
    sqlite3_bind_double(statement_, ++bound_, number);
    return *this;
  }
  Statement& Bind(int64_t number) {
    sqlite3_bind_int64(statement_, ++bound_, number);
    return *this;
  }
  Statement& Bind(const TuningKey& key) {
    Bind(key.workload).Bind(key.layouts).Bind(key.toolchain).Bind(key.version).Bind(key.machine);
    return Bind(static_cast<int64_t>(key.num_threads));
  }

  /// True while there is a row.
  bool Step(const char* doing) {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) database_.Fail(code, doing);
    return false;
  }

  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  double Double(int column) const { return sqlite3_column_double(statement_, column); }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text == nullptr ? "" : text;
  }

 private:
  TuningDatabase& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

TuningDatabase::TuningDatabase(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code failure;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), failure);
  if (failure) {
    throw Error(ErrorCategory::kResource, "cannot create the tuning database's folder: " + failure.message(),
                path_.parent_path().string());
  }
  if (TryOpen()) return;
  std::filesystem::path aside;
  for (int i = 1; aside.empty() || std::filesystem::exists(aside); ++i) {
    aside = path_.string() + ".corrupt-" + std::to_string(i);
  }
  std::filesystem::rename(path_, aside);
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path_.string() + suffix, failure);
  notices_.push_back(
      fmt::format("the tuning database was damaged; it is kept as '{}' and a new one begun", aside.string()));
  if (!TryOpen()) throw Error(ErrorCategory::kCorrupt, "cannot begin a new tuning database", path_.string());
}

TuningDatabase::~TuningDatabase() { Close(); }

void TuningDatabase::Close() {
  sqlite3_close(handle_);
  handle_ = nullptr;
}

/// False when the file is damaged.
bool TuningDatabase::TryOpen() {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path_.c_str(), &handle_, flags, nullptr);
  if (code != SQLITE_OK) Fail(code, "open");
  if (sqlite3_db_readonly(handle_, "main") == 1) {
    Close();
    throw Error(ErrorCategory::kResource, "the tuning database is read-only", path_.string(),
                "give another one with --database PATH, or make this one writable");
  }
  sqlite3_busy_timeout(handle_, kBusyTimeoutMs);
  try {
    if (Text("PRAGMA journal_mode") != "wal") Execute("PRAGMA journal_mode = WAL");
    Execute("PRAGMA synchronous = NORMAL");
    if (Text("PRAGMA quick_check") != "ok") {
      throw Error(ErrorCategory::kCorrupt, "the integrity check failed", path_.string());
    }
    const int version = std::stoi(Text("PRAGMA user_version"));
    if (version > kSchemaVersion) {
      throw Error(
          ErrorCategory::kInput,
          fmt::format("the tuning database has schema {}, this Collage knows up to {}", version, kSchemaVersion),
          path_.string(), "use a newer Collage, or another file with --database PATH");
    }
    if (version < kSchemaVersion) {
      // Another process may be doing the same: the write lock comes first, then it is done or found done.
      Execute("BEGIN IMMEDIATE");
      Execute(kSchema);
      Execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str());
      Execute("COMMIT");
    }
  } catch (const Error& error) {
    Close();
    if (error.category() != ErrorCategory::kCorrupt) throw;
    return false;
  }
  return true;
}

/// The first column of a query's first row.
std::string TuningDatabase::Text(const char* sql) {
  Statement query(*this, sql);
  return query.Step("read") ? query.Text(0) : "";
}

void TuningDatabase::Execute(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) Fail(code, "write");
}

void TuningDatabase::Fail(int code, const std::string& doing) {
  const std::string detail = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
  const auto category = IsDamage(code & 0xff) ? ErrorCategory::kCorrupt : ErrorCategory::kResource;
  throw Error(category, fmt::format("cannot {} the tuning database: {}", doing, detail), path_.string(),
              "give another one with --database PATH");
}

std::filesystem::path TuningDatabase::DefaultPath() {
  if (const char* path = std::getenv("COLLAGE_DATABASE"); path != nullptr && *path != '\0') return path;
  std::filesystem::path cache;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') {
    cache = xdg;
  } else {
    const char* home = std::getenv("HOME");
    cache = std::filesystem::path(home == nullptr ? "." : home) / ".cache";
  }
  return cache / "collage" / "tuning.db";
}

std::optional<TuningRecord> TuningDatabase::Find(const TuningKey& key) {
  Statement query(*this,
                  "SELECT ok, minimum, p50, p90, num_samples, max_error, label, reason FROM measurement WHERE "
                  "workload = ? AND layouts = ? AND toolchain = ? AND version = ? AND machine = ? AND num_threads = ?");
  query.Bind(key);
  if (!query.Step("read")) return std::nullopt;
  TuningRecord record;
  record.ok = query.Int(0) != 0;
  record.minimum = query.Double(1);
  record.p50 = query.Double(2);
  record.p90 = query.Double(3);
  record.num_samples = query.Int(4);
  record.max_error = query.Double(5);
  record.label = query.Text(6);
  record.reason = query.Text(7);
  return record;
}

void TuningDatabase::Put(const TuningKey& key, const TuningRecord& record) {
  Statement insert(*this,
                   "INSERT OR REPLACE INTO measurement (workload, layouts, toolchain, version, machine, num_threads, "
                   "ok, minimum, p50, p90, num_samples, max_error, label, reason) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.Bind(key).Bind(static_cast<int64_t>(record.ok ? 1 : 0)).Bind(record.minimum).Bind(record.p50);
  insert.Bind(record.p90).Bind(record.num_samples).Bind(record.max_error).Bind(record.label).Bind(record.reason);
  insert.Step("write");
}

TuningStats TuningDatabase::Stats() {
  TuningStats stats;
  Statement query(*this, "SELECT toolchain, COUNT(*), SUM(1 - ok) FROM measurement GROUP BY toolchain");
  while (query.Step("read")) {
    stats.by_toolchain[query.Text(0)] = query.Int(1);
    stats.records += query.Int(1);
    stats.failures += query.Int(2);
  }
  std::error_code ignored;
  stats.bytes = static_cast<int64_t>(std::filesystem::file_size(path_, ignored));
  return stats;
}

}  // namespace collage
