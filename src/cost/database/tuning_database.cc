// tuning_database.cc: the tuning database's statements.
#include "cost/database/tuning_database.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "collage/support/error.h"
#include "support/environment.h"
#include "support/file_cache.h"

namespace collage {
namespace {

/// Statements that bring a store from version i to i + 1. Never edited once released: a change is one more entry.
const std::array<std::vector<const char*>, 5> kMigrations{{
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
}};
constexpr int kSchemaVersion = static_cast<int>(kMigrations.size());

constexpr const char* kColumns =
    "workload, layouts, toolchain, version, machine, num_threads, "
    "ok, minimum, p50, p90, num_samples, max_error, label, reason, measured_at, p10, p25, p75, p99, half_width, drift, "
    "schedule";
constexpr const char* kInsert =
    "INSERT INTO measurement ({}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, "
    "$18, $19, $20, $21, $22) "
    "ON CONFLICT (workload, layouts, toolchain, version, machine, num_threads) DO UPDATE SET "
    "ok = excluded.ok, minimum = excluded.minimum, p50 = excluded.p50, p90 = excluded.p90, "
    "num_samples = excluded.num_samples, max_error = excluded.max_error, label = excluded.label, "
    "reason = excluded.reason, measured_at = excluded.measured_at, p10 = excluded.p10, p25 = excluded.p25, "
    "p75 = excluded.p75, p99 = excluded.p99, half_width = excluded.half_width, drift = excluded.drift, "
    "schedule = excluded.schedule";
constexpr const char* kCompilationColumns =
    "model, machine, num_threads, versions, winner, seconds, additive_error, apparent_loss, compiled_at, "
    "optimality_loss";
constexpr const char* kHasKey =
    "workload = $1 AND layouts = $2 AND toolchain = $3 AND version = $4 AND machine = $5 AND num_threads = $6";

std::string Now() { return UtcText(std::time(nullptr)); }

std::string Text(double number) { return fmt::format("{:.17g}", number); }

double Number(const std::string& text) { return text.empty() ? 0 : std::stod(text); }

std::vector<std::string> Parameters(const TuningKey& key) {
  return {key.workload, key.layouts, key.toolchain, key.version, key.machine, std::to_string(key.num_threads)};
}

std::vector<std::string> Parameters(const TuningKey& key, const TuningRecord& record) {
  std::vector<std::string> all = Parameters(key);
  const std::string when = record.measured_at.empty() ? Now() : record.measured_at;
  for (std::string text : {std::string(record.ok ? "1" : "0"), Text(record.minimum), Text(record.p50), Text(record.p90),
                           std::to_string(record.num_samples), Text(record.max_error), record.label, record.reason,
                           when, Text(record.p10), Text(record.p25), Text(record.p75), Text(record.p99),
                           Text(record.half_width), Text(record.drift), record.schedule}) {
    all.push_back(std::move(text));
  }
  return all;
}

TuningKey KeyOf(const SqlRow& row) { return {row[0], row[1], row[2], row[3], row[4], std::stoi(row[5])}; }

TuningRecord RecordOf(const SqlRow& row) {
  TuningRecord record;
  record.ok = row[6] == "1";
  record.minimum = Number(row[7]);
  record.p50 = Number(row[8]);
  record.p90 = Number(row[9]);
  record.num_samples = row[10].empty() ? 0 : std::stoll(row[10]);
  record.max_error = Number(row[11]);
  record.label = row[12];
  record.reason = row[13];
  record.measured_at = row[14];
  record.p10 = Number(row[15]);
  record.p25 = Number(row[16]);
  record.p75 = Number(row[17]);
  record.p99 = Number(row[18]);
  record.half_width = Number(row[19]);
  record.drift = Number(row[20]);
  record.schedule = row[21];
  return record;
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
  const std::filesystem::file_status status = std::filesystem::status(place, failure);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCategory::kInput, "the tuning database is no regular file", place,
                "give another one with --database PATH");
  }
  failure.clear();
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
    }
    sql_->SetSchemaVersion(kSchemaVersion);
    sql_->Commit();
  } catch (const Error&) {
    sql_->RollBack();
    throw;
  }
}

std::string TuningDatabase::DefaultPlace() {
  const std::string place = GetEnvironment("COLLAGE_DATABASE").value_or("");
  return !place.empty() ? place : (UserCacheFolder() / "tuning.db").string();
}

std::optional<TuningRecord> TuningDatabase::Find(const TuningKey& key) {
  const std::vector<SqlRow> rows =
      sql_->Query(fmt::format("SELECT {} FROM measurement WHERE {}", kColumns, kHasKey), Parameters(key));
  if (rows.empty()) return std::nullopt;
  return RecordOf(rows[0]);
}

void TuningDatabase::Put(const TuningKey& key, const TuningRecord& record) {
  sql_->Query(fmt::format(kInsert, kColumns), Parameters(key, record));
}

bool TuningDatabase::PutIfNewer(const TuningKey& key, const TuningRecord& record) {
  const std::string statement =
      fmt::format(kInsert, kColumns) + " WHERE measurement.measured_at < excluded.measured_at RETURNING ok";
  return !sql_->Query(statement, Parameters(key, record)).empty();
}

void TuningDatabase::ForEach(const std::function<void(const TuningKey&, const TuningRecord&)>& visit) {
  const std::vector<SqlRow> rows = sql_->Query(fmt::format(
      "SELECT {} FROM measurement ORDER BY workload, layouts, toolchain, version, machine, num_threads", kColumns));
  for (const SqlRow& row : rows) visit(KeyOf(row), RecordOf(row));
}

int64_t TuningDatabase::Collect(const GarbageRule& rule) {
  int64_t removed = 0;
  const auto remove = [&](const std::string& condition, const std::vector<std::string>& parameters) {
    const std::string statement = "DELETE FROM measurement WHERE " + condition + " RETURNING ok";
    removed += static_cast<int64_t>(sql_->Query(statement, parameters).size());
  };
  for (const auto& [toolchain, version] : rule.versions) {
    // The text behind the slash of a version says how it was measured; the text behind a toolchain's name has its
    // options.
    remove("(toolchain = $1 OR toolchain LIKE $2) AND machine = $3 AND version <> $4 AND version NOT LIKE $5",
           {toolchain, toolchain + " -%", rule.machine, version, version + "/%"});
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
  const std::vector<SqlRow> rows =
      sql_->Query("SELECT toolchain, COUNT(*), SUM(1 - ok) FROM measurement GROUP BY toolchain");
  for (const SqlRow& row : rows) {
    stats.by_toolchain[row[0]] = std::stoll(row[1]);
    stats.records += std::stoll(row[1]);
    stats.failures += std::stoll(row[2]);
  }
  stats.bytes = sql_->Bytes();
  return stats;
}

std::vector<std::string> TuningDatabase::Verify() {
  std::vector<std::string> problems;
  if (const std::string damage = sql_->FindDamage(/*thorough=*/true); !damage.empty()) problems.push_back(damage);
  ForEach([&](const TuningKey& key, const TuningRecord& record) {
    std::string problem;
    if (record.ok) {
      const auto known = KnownQuantiles(record);
      const bool is_number =
          std::all_of(known.begin(), known.end(), [](const auto& quantile) { return std::isfinite(quantile.second); });
      if (!is_number || record.minimum < 0) {
        problem = "a time is no time";
      } else if (record.num_samples > 0 &&
                 !std::is_sorted(known.begin(), known.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; })) {
        problem = "its quantiles are out of order";
      }
    } else if (record.reason.empty()) {
      problem = "it failed for no reason";
    }
    if (problem.empty()) return;
    problems.push_back(fmt::format("{} {} {} ({}, {} threads): {}", key.toolchain, key.workload, key.layouts,
                                   key.version, key.num_threads, problem));
  });
  return problems;
}

}  // namespace collage
