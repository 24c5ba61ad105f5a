// tuning_database.cc: the tuning database's statements.
#include "cost/database/tuning_database.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "collage/support/error.h"
#include "cost/database/legacy_records.h"
#include "cost/database/record_fields.h"
#include "support/environment.h"
#include "support/file_cache.h"
#include "support/hash.h"

namespace collage {
namespace {

/// Statements that bring a store from version i to i + 1. Never edited once released: a change is one more entry.
const std::array<std::vector<const char*>, 7> kMigrations{{
    {R"(CREATE TABLE IF NOT EXISTS measurement (
          workload TEXT NOT NULL, layouts TEXT NOT NULL, toolchain TEXT NOT NULL, version TEXT NOT NULL,
          machine TEXT NOT NULL, num_threads INTEGER NOT NULL,
          ok INTEGER NOT NULL, minimum DOUBLE PRECISION, p50 DOUBLE PRECISION, p90 DOUBLE PRECISION,
          num_samples BIGINT, max_error DOUBLE PRECISION,
          label TEXT, reason TEXT, measured_at TEXT NOT NULL,
          PRIMARY KEY (workload, layouts, toolchain, version, machine, num_threads)))"},
    {R"(CREATE TABLE compilation (
          model TEXT NOT NULL, machine TEXT NOT NULL, num_threads INTEGER NOT NULL, versions TEXT NOT NULL,
          winner TEXT NOT NULL, seconds DOUBLE PRECISION NOT NULL, additive_error DOUBLE PRECISION NOT NULL,
          apparent_loss TEXT NOT NULL, compiled_at TEXT NOT NULL))"},
    {"ALTER TABLE measurement ADD COLUMN p10 DOUBLE PRECISION",
     "ALTER TABLE measurement ADD COLUMN p25 DOUBLE PRECISION",
     "ALTER TABLE measurement ADD COLUMN p75 DOUBLE PRECISION",
     "ALTER TABLE measurement ADD COLUMN p99 DOUBLE PRECISION",
     "ALTER TABLE measurement ADD COLUMN half_width DOUBLE PRECISION",
     "ALTER TABLE measurement ADD COLUMN drift DOUBLE PRECISION"},
    {"ALTER TABLE compilation ADD COLUMN optimality_loss DOUBLE PRECISION"},
    {"ALTER TABLE measurement ADD COLUMN schedule TEXT"},
    // The rows of `measurement` are then translated (TranslateMeasurements).
    {R"(CREATE TABLE timing (
          digest TEXT PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, toolchain TEXT NOT NULL,
          version TEXT NOT NULL, machine TEXT NOT NULL,
          ok INTEGER NOT NULL, minimum DOUBLE PRECISION NOT NULL, p50 DOUBLE PRECISION NOT NULL,
          p90 DOUBLE PRECISION NOT NULL, num_samples BIGINT NOT NULL, max_error DOUBLE PRECISION NOT NULL,
          reason TEXT NOT NULL, p10 DOUBLE PRECISION NOT NULL, p25 DOUBLE PRECISION NOT NULL,
          p75 DOUBLE PRECISION NOT NULL, p99 DOUBLE PRECISION NOT NULL, half_width DOUBLE PRECISION NOT NULL,
          drift DOUBLE PRECISION NOT NULL, label TEXT NOT NULL, schedule TEXT NOT NULL, measured_at TEXT NOT NULL))",
     R"(CREATE TABLE schedule_list (
          digest TEXT PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, toolchain TEXT NOT NULL,
          version TEXT NOT NULL, machine TEXT NOT NULL,
          ok INTEGER NOT NULL, value TEXT NOT NULL, measured_at TEXT NOT NULL))",
     R"(CREATE TABLE comparison (
          digest TEXT PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, toolchain TEXT NOT NULL,
          version TEXT NOT NULL, machine TEXT NOT NULL,
          ok INTEGER NOT NULL, value TEXT NOT NULL, measured_at TEXT NOT NULL))",
     R"(CREATE TABLE play_off (
          digest TEXT PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, toolchain TEXT NOT NULL,
          version TEXT NOT NULL, machine TEXT NOT NULL,
          ok INTEGER NOT NULL, value TEXT NOT NULL, measured_at TEXT NOT NULL))"},
    {R"(CREATE TABLE machine (
          digest TEXT PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, toolchain TEXT NOT NULL,
          version TEXT NOT NULL, machine TEXT NOT NULL,
          ok INTEGER NOT NULL, value TEXT NOT NULL, measured_at TEXT NOT NULL))"},
}};
constexpr int kSchemaVersion = static_cast<int>(kMigrations.size());
/// The first version whose keys are typed.
constexpr int kTypedKeys = 6;

constexpr const char* kTimings = "timing";
constexpr std::array<const char*, 5> kTables{kTimings, ScheduleListKey::kKind, ComparisonKey::kKind, PlayOffKey::kKind,
                                             MachineKey::kKind};

std::string TableOf(const TuningKey&) { return kTimings; }
std::string TableOf(const ResultKey& key) { return KindOf(key); }

constexpr const char* kCompilationColumns =
    "model, machine, num_threads, versions, winner, seconds, additive_error, apparent_loss, compiled_at, "
    "optimality_loss";

std::string Now() { return UtcText(std::time(nullptr)); }

std::string Text(double number) { return fmt::format("{:.17g}", number); }

double Number(const std::string& text) { return text.empty() ? 0 : std::stod(text); }

/// Lists the fields of a record as columns.
class RowWriter {
 public:
  void Field(const char* name, const std::string& value) {
    columns.emplace_back(name);
    values.push_back(value);
  }
  void Field(const char* name, double value) { Field(name, Text(value)); }
  void Field(const char* name, int64_t value) { Field(name, std::to_string(value)); }
  void Field(const char* name, bool value) { Field(name, static_cast<int64_t>(value)); }
  template <typename T>
  void OptionalField(const char* name, const T& value) {
    Field(name, value);
  }

  std::vector<std::string> columns;
  std::vector<std::string> values;
};

/// Reads the fields of a record from the columns from `first` on.
class RowReader {
 public:
  RowReader(const SqlRow& row, size_t first) : row_(row), next_(first) {}
  void Field(const char*, std::string& value) { value = row_[next_++]; }
  void Field(const char*, double& value) { value = Number(row_[next_++]); }
  void Field(const char*, int64_t& value) { value = static_cast<int64_t>(Number(row_[next_++])); }
  void Field(const char*, bool& value) { value = row_[next_++] == "1"; }
  template <typename T>
  void OptionalField(const char* name, T& value) {
    Field(name, value);
  }

 private:
  const SqlRow& row_;
  size_t next_;
};

template <typename Record>
std::string ColumnsOf() {
  RowWriter row;
  const Record any;
  VisitFields(any, row);
  return fmt::format("{}", fmt::join(row.columns, ", "));
}

template <typename Record>
Record RecordOf(const SqlRow& row, size_t first) {
  Record record;
  RowReader reader(row, first);
  VisitFields(record, reader);
  return record;
}

template <typename Record, typename Key>
std::optional<Record> FindIn(SqlConnection& sql, const Key& key) {
  const std::vector<SqlRow> rows = sql.Query(
      fmt::format("SELECT {} FROM {} WHERE digest = $1", ColumnsOf<Record>(), TableOf(key)), {HexDigest(ToText(key))});
  if (rows.empty()) return std::nullopt;
  return RecordOf<Record>(rows[0], 0);
}

/// Adds a record, or replaces the one there is, with `keeps_newer` only an older one. Whether anything changed.
template <typename Key, typename Record>
bool PutInto(SqlConnection& sql, const Key& key, Record record, bool keeps_newer = false) {
  if (record.measured_at.empty()) record.measured_at = Now();
  RowWriter row;
  const std::string text = ToText(key);
  const ToolchainOfKey toolchain = ToolchainOf(key);
  row.Field("digest", HexDigest(text));
  row.Field("key", text);
  row.Field("kind", KindOf(key));
  row.Field("toolchain", toolchain.name);
  row.Field("version", toolchain.version);
  row.Field("machine", key.machine);
  VisitFields(std::as_const(record), row);
  std::string places, changes;
  for (size_t i = 0; i < row.columns.size(); ++i) {
    places += fmt::format("{}${}", i == 0 ? "" : ", ", i + 1);
    if (i > 0) changes += fmt::format("{0}{1} = excluded.{1}", i == 1 ? "" : ", ", row.columns[i]);
  }
  const std::string condition =
      keeps_newer ? fmt::format("WHERE {}.measured_at < excluded.measured_at", TableOf(key)) : "";
  const std::string statement =
      fmt::format("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (digest) DO UPDATE SET {} {} RETURNING ok", TableOf(key),
                  fmt::join(row.columns, ", "), places, changes, condition);
  return !sql.Query(statement, row.values).empty();
}

/// The record that a row of `measurement` holds behind the six texts of its key.
LegacyRecord LegacyRecordOf(const SqlRow& row) {
  return {row[0], row[1], row[2], row[3], row[4], std::stoi(row[5]), RecordOf<TuningRecord>(row, 6)};
}

/// A record's quantiles that are known, as fraction and seconds in ascending order of fraction.
std::vector<std::pair<double, double>> KnownQuantiles(const TuningRecord& record) {
  std::vector<std::pair<double, double>> known{{0, record.minimum}};
  for (const auto& [fraction, seconds] :
       {std::pair{0.1, record.p10}, std::pair{0.25, record.p25}, std::pair{0.5, record.p50},
        std::pair{0.75, record.p75}, std::pair{0.9, record.p90}, std::pair{0.99, record.p99}}) {
    if (seconds != 0) known.emplace_back(fraction, seconds);
  }
  return known;
}

/// Why a record makes no sense; empty if it does.
std::string FindProblem(const TuningRecord& record) {
  if (!record.ok) return record.reason.empty() ? "it failed for no reason" : "";
  const auto known = KnownQuantiles(record);
  const bool is_number =
      std::all_of(known.begin(), known.end(), [](const auto& quantile) { return std::isfinite(quantile.second); });
  if (!is_number || record.minimum < 0) return "a time is no time";
  const auto is_less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const bool is_sorted = std::is_sorted(known.begin(), known.end(), is_less);
  return record.num_samples > 0 && !is_sorted ? "its quantiles are out of order" : "";
}

std::string FindProblem(const ResultRecord& record) {
  return record.value.empty() || nlohmann::json::accept(record.value) ? "" : "its value is no JSON";
}

/// Whether there is a file at `place`. Throws kInput when something else is.
bool FindFile(const std::string& place) {
  std::error_code missing;
  const std::filesystem::file_status status = std::filesystem::status(place, missing);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCategory::kInput, "the tuning database is no regular file", place,
                "give another one with --database PATH");
  }
  return std::filesystem::exists(status);
}

void RequireFile(const std::string& place) {
  if (FindFile(place)) return;
  throw Error(ErrorCategory::kInput, "there is no such database", place,
              "`collage compile`, `tune` and `db import` create one; --database names another");
}

}  // namespace

double TuningRecord::Quantile(double fraction) const {
  const std::vector<std::pair<double, double>> known = KnownQuantiles(*this);
  for (size_t i = 1; i < known.size(); ++i) {
    const auto [below, least] = known[i - 1];
    const auto [above, most] = known[i];
    if (fraction == above) return most;  // to the last bit
    if (fraction < above) return least + (most - least) * (fraction - below) / (above - below);
  }
  return known.back().second;
}

std::string UtcText(std::time_t time) { return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(time)); }

TuningDatabase::TuningDatabase(std::string place) : place_(WithoutPassword(place)) {
  if (IsPostgresUrl(place)) {
    sql_ = OpenPostgres(place);
    Migrate();
    return;
  }
  const std::filesystem::path folder = std::filesystem::path(place).parent_path();
  std::error_code failure;
  FindFile(place);
  if (!folder.empty()) std::filesystem::create_directories(folder, failure);
  if (failure) {
    throw Error(ErrorCategory::kResource, "cannot create the tuning database's folder: " + failure.message(),
                folder.string());
  }
  if (TryOpenFile(place)) return;
  std::filesystem::path aside;
  for (int i = 1; aside.empty() || std::filesystem::exists(aside); ++i) {
    aside = place + ".corrupt-" + std::to_string(i);
  }
  std::filesystem::rename(place, aside);
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(place + suffix, failure);
  notices_.push_back(
      fmt::format("the tuning database was damaged; it is kept as '{}' and a new one begun", aside.string()));
  if (!TryOpenFile(place)) throw Error(ErrorCategory::kCorrupt, "cannot begin a new tuning database", place);
}

TuningDatabase TuningDatabase::OpenExisting(const std::string& place) {
  if (!IsPostgresUrl(place)) RequireFile(place);
  return TuningDatabase(place);
}

TuningDatabase TuningDatabase::ForReading(const std::string& place) {
  if (IsPostgresUrl(place)) return TuningDatabase(place);
  RequireFile(place);
  TuningDatabase database;
  database.place_ = place;
  try {
    database.sql_ = OpenSqliteForReading(place);
    const std::string damage = database.sql_->FindDamage(/*thorough=*/false);
    if (!damage.empty()) throw Error(ErrorCategory::kCorrupt, damage, place);
    if (database.sql_->SchemaVersion() != kSchemaVersion) database.sql_ = CopySqliteToMemory(place);
    database.Migrate();
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kCorrupt) throw;
    throw Error(ErrorCategory::kCorrupt, "the tuning database is damaged: " + error.message(), place,
                "the next compilation keeps it under another name and begins a new one");
  }
  return database;
}

/// False when the file is damaged.
bool TuningDatabase::TryOpenFile(const std::string& path) {
  try {
    sql_ = OpenSqlite(path);
    const std::string damage = sql_->FindDamage(/*thorough=*/false);
    if (!damage.empty()) throw Error(ErrorCategory::kCorrupt, damage, path);
    Migrate();
    return true;
  } catch (const Error& error) {
    sql_.reset();
    if (error.category() != ErrorCategory::kCorrupt) throw;
    return false;
  }
}

void TuningDatabase::Migrate() {
  if (sql_->SchemaVersion() == kSchemaVersion) return;
  // Another process may be doing the same: the lock comes first, then it is done or found done.
  sql_->BeginExclusive();
  try {
    const int version = sql_->SchemaVersion();
    if (version > kSchemaVersion) {
      throw Error(
          ErrorCategory::kInput,
          fmt::format("the tuning database has schema {}, this Collage knows up to {}", version, kSchemaVersion),
          place_, "use a newer Collage, or another place with --database");
    }
    for (int i = version; i < kSchemaVersion; ++i) {
      for (const char* statement : kMigrations[static_cast<size_t>(i)]) sql_->Query(statement);
      if (i + 1 == kTypedKeys) TranslateMeasurements();
    }
    sql_->SetSchemaVersion(kSchemaVersion);
    sql_->Commit();
  } catch (const Error&) {
    sql_->RollBack();
    throw;
  }
}

/// Moves the rows of schema 5 to the tables that came after it.
void TuningDatabase::TranslateMeasurements() {
  LegacyTranslator translator;
  std::map<std::string, int64_t> dropped;  // reason → records
  const std::string statement = fmt::format(
      "SELECT workload, layouts, toolchain, version, machine, num_threads, {} FROM measurement ORDER BY workload",
      ColumnsOf<TuningRecord>());
  for (const SqlRow& row : sql_->Query(statement)) {
    const Result<TuningEntry> entry = translator.Translate(LegacyRecordOf(row));
    if (entry.ok()) {
      PutIfNewer(*entry);
    } else {
      ++dropped[entry.reason().text];
    }
  }
  sql_->Query("DROP TABLE measurement");
  for (const auto& [reason, count] : dropped) {
    notices_.push_back(
        fmt::format("dropped from the tuning database while it was brought up to date: {} x {}", count, reason));
  }
}

int TuningDatabase::SchemaVersion() { return kSchemaVersion; }

std::string TuningDatabase::DefaultPlace() {
  const std::string place = GetEnvironment("COLLAGE_DATABASE").value_or("");
  return !place.empty() ? place : (UserCacheFolder() / "tuning.db").string();
}

std::optional<TuningRecord> TuningDatabase::Find(const TuningKey& key) { return FindIn<TuningRecord>(*sql_, key); }
std::optional<ResultRecord> TuningDatabase::Find(const ResultKey& key) { return FindIn<ResultRecord>(*sql_, key); }

void TuningDatabase::Put(const TuningKey& key, const TuningRecord& record) { PutInto(*sql_, key, record); }
void TuningDatabase::Put(const ResultKey& key, const ResultRecord& record) { PutInto(*sql_, key, record); }

bool TuningDatabase::PutIfNewer(const TuningEntry& entry) {
  return std::visit([&](const auto& one) { return PutInto(*sql_, one.first, one.second, /*keeps_newer=*/true); },
                    entry);
}

void TuningDatabase::ForEach(const std::function<void(const TuningEntry&)>& visit) {
  for (const char* table : kTables) {
    const std::string columns = table == kTimings ? ColumnsOf<TuningRecord>() : ColumnsOf<ResultRecord>();
    for (const SqlRow& row : sql_->Query(fmt::format("SELECT key, {} FROM {} ORDER BY key", columns, table))) {
      const auto key = KeyFromText(row[0]);
      if (const auto* timing = std::get_if<TuningKey>(&key)) {
        visit(std::pair{*timing, RecordOf<TuningRecord>(row, 1)});
      } else {
        visit(std::pair{std::get<ResultKey>(key), RecordOf<ResultRecord>(row, 1)});
      }
    }
  }
}

int64_t TuningDatabase::Collect(const GarbageRule& rule) {
  int64_t removed = 0;
  const auto remove = [&](const std::string& condition, const std::vector<std::string>& parameters) {
    for (const char* table : kTables) {
      const std::string statement = fmt::format("DELETE FROM {} WHERE {} RETURNING ok", table, condition);
      removed += static_cast<int64_t>(sql_->Query(statement, parameters).size());
    }
  };
  for (const auto& [toolchain, version] : rule.versions) {
    // The text behind a toolchain's name has its options.
    remove("(toolchain = $1 OR toolchain LIKE $2) AND machine = $3 AND version <> $4",
           {toolchain, toolchain + " -%", rule.machine, version});
  }
  if (!rule.before.empty()) remove("measured_at < $1", {rule.before});
  if (rule.failures) remove("ok = 0", {});
  return removed;
}

void TuningDatabase::Put(const CompilationRecord& record) {
  sql_->Query(fmt::format("INSERT INTO compilation ({}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, "
                          "CAST(NULLIF($10, '') AS DOUBLE PRECISION))",
                          kCompilationColumns),
              {record.model, record.machine, std::to_string(record.num_threads), record.versions, record.winner,
               Text(record.seconds), Text(record.additive_error), record.apparent_loss,
               record.compiled_at.empty() ? Now() : record.compiled_at,
               record.optimality_loss ? Text(*record.optimality_loss) : ""});
}

std::vector<CompilationRecord> TuningDatabase::Compilations() {
  std::vector<CompilationRecord> records;
  const std::vector<SqlRow> rows =
      sql_->Query(fmt::format("SELECT {} FROM compilation ORDER BY compiled_at, model", kCompilationColumns));
  for (const SqlRow& row : rows) {
    records.push_back(
        {row[0], row[1], std::stoi(row[2]), row[3], row[4], Number(row[5]), Number(row[6]), row[7], row[8], {}});
    if (!row[9].empty()) records.back().optimality_loss = Number(row[9]);
  }
  return records;
}

TuningStats TuningDatabase::Stats() {
  TuningStats stats;
  for (const char* table : kTables) {
    const std::string statement =
        fmt::format("SELECT kind, toolchain, COUNT(*), SUM(1 - ok) FROM {} GROUP BY kind, toolchain", table);
    for (const SqlRow& row : sql_->Query(statement)) {
      const int64_t records = std::stoll(row[2]);
      stats.by_kind[row[0]] += records;
      if (!row[1].empty()) stats.by_toolchain[row[1]] += records;
      stats.records += records;
      stats.failures += std::stoll(row[3]);
    }
  }
  stats.bytes = sql_->Bytes();
  return stats;
}

std::vector<std::string> TuningDatabase::Verify() {
  std::vector<std::string> problems;
  if (const std::string damage = sql_->FindDamage(/*thorough=*/true); !damage.empty()) problems.push_back(damage);
  ForEach([&](const TuningEntry& entry) {
    std::visit(
        [&](const auto& one) {
          const std::string problem = FindProblem(one.second);
          if (!problem.empty()) problems.push_back(fmt::format("{}: {}", ToText(one.first), problem));
        },
        entry);
  });
  return problems;
}

StoreCheck TuningDatabase::Check(const std::string& place) {
  try {
    TuningDatabase database = ForReading(place);
    return {database.Stats().records, database.Verify()};
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kCorrupt) throw;
    return {0, {error.message()}};
  }
}

}  // namespace collage
