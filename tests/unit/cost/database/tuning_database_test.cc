#include "cost/database/tuning_database.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>

#include "collage/support/error.h"
#include "support/file.h"
#include "unit/cost/database/store_test.h"

namespace collage {
namespace {

class TuningDatabaseTest : public StoreTest {};

INSTANTIATE_TEST_SUITE_P(Stores, TuningDatabaseTest, testing::Values(Store::kSqlite, Store::kPostgres), NameOfStore);

TuningKey Key(int i, const std::string& version = "1", const std::string& machine = "machine") {
  return {PartitionKey{"workload-" + std::to_string(i), "p:p", "acme", version, "m3", std::nullopt}, machine, 1};
}

TuningRecord Record(double seconds) {
  TuningRecord record;
  record.ok = true;
  record.minimum = seconds;
  record.p50 = seconds;
  record.p90 = seconds;
  record.num_samples = 7;
  record.label = "conv";
  return record;
}

TuningRecord Failure(const std::string& reason) {
  TuningRecord record;
  record.reason = reason;
  return record;
}

TEST_P(TuningDatabaseTest, RemembersEveryBitBetweenOpenings) {
  const double seconds = 0.1 + 1e-17 + 1.0 / 3;
  TuningRecord record = Record(seconds);
  record.max_error = std::numeric_limits<double>::infinity();
  record.label = "it's a 'label' with \"quotes\", ü and $1";
  TuningDatabase(place_).Put(Key(1), record);
  TuningDatabase again(place_);
  const std::optional<TuningRecord> found = again.Find(Key(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->p50, seconds);
  EXPECT_EQ(found->max_error, record.max_error);
  EXPECT_EQ(found->label, record.label);
  EXPECT_EQ(found->num_samples, 7);
  EXPECT_FALSE(found->measured_at.empty());
  EXPECT_FALSE(again.Find(Key(2)).has_value());
  EXPECT_EQ(again.Stats().records, 1);
}

TEST_P(TuningDatabaseTest, KeepsQuantilesIntervalAndDrift) {
  TuningRecord record = Record(0.5);
  record.minimum = 0.1;
  record.p10 = 0.2;
  record.p25 = 0.3;
  record.p75 = 0.7;
  record.p90 = 0.8;
  record.p99 = 0.9;
  record.half_width = 0.01;
  record.drift = 1.05;
  TuningDatabase(place_).Put(Key(1), record);
  TuningDatabase database(place_);
  const TuningRecord found = *database.Find(Key(1));
  for (const double fraction : {0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 1.0}) {
    EXPECT_EQ(found.Quantile(fraction), record.Quantile(fraction)) << fraction;
  }
  EXPECT_EQ(found.half_width, 0.01);
  EXPECT_EQ(found.drift, 1.05);
  EXPECT_TRUE(database.Verify().empty());
  record.p75 = 0.4;
  database.Put(Key(1), record);
  EXPECT_EQ(database.Find(Key(1))->p75, 0.4);
  EXPECT_EQ(database.Verify().size(), 1u);
}

TEST(TuningRecordTest, QuantilesBetweenThoseKnownAreOnALine) {
  TuningRecord record;
  record.minimum = 1;
  record.p50 = 3;
  record.p90 = 7;
  EXPECT_EQ(record.Quantile(0), 1);
  EXPECT_DOUBLE_EQ(record.Quantile(0.25), 2);
  EXPECT_EQ(record.Quantile(0.5), 3);
  EXPECT_DOUBLE_EQ(record.Quantile(0.7), 5);
  EXPECT_EQ(record.Quantile(0.9), 7);
  EXPECT_EQ(record.Quantile(1), 7);  // nothing is known beyond
  record.p75 = 4;
  EXPECT_DOUBLE_EQ(record.Quantile(0.625), 3.5);
  EXPECT_EQ(TuningRecord().Quantile(0.5), 0);
}

TEST_P(TuningDatabaseTest, TheLastWordCountsUnlessItIsOlder) {
  TuningDatabase database(place_);
  database.Put(Key(1), Record(1));
  database.Put(Key(1), Record(2));
  EXPECT_EQ(database.Find(Key(1))->p50, 2);
  TuningRecord old = Record(3);
  old.measured_at = "2001-01-01 00:00:00";
  EXPECT_FALSE(database.PutIfNewer(std::pair{Key(1), old}));
  EXPECT_EQ(database.Find(Key(1))->p50, 2);
  EXPECT_TRUE(database.PutIfNewer(std::pair{Key(2), old}));
  old.p50 = 4;
  old.measured_at = "2101-01-01 00:00:00";
  EXPECT_TRUE(database.PutIfNewer(std::pair{Key(1), old}));
  EXPECT_EQ(database.Find(Key(1))->p50, 4);
}

TEST_P(TuningDatabaseTest, CollectsWhatIsOfNoMoreUse) {
  TuningDatabase database(place_);
  const auto put = [&](int i, const std::string& version, const std::string& machine, const TuningRecord& record) {
    database.Put(Key(i, version, machine), record);
  };
  put(1, "1", "here", Record(1));
  const auto list = [](const std::string& toolchain, const std::string& version) {
    return ResultKey{ScheduleListKey{{"w", "p:p", toolchain, version, "m3", ""}}, "here", 1};
  };
  database.Put(list("acme -level=2", "1"), {.ok = true, .value = "[]", .measured_at = ""});
  database.Put(list("acme -level=2", "2"), {.ok = true, .value = "[]", .measured_at = ""});
  database.Put(list("acme -level=3", "1"), {.ok = false, .value = "[]", .measured_at = ""});
  put(2, "2", "here", Record(1));
  put(3, "2", "there", Record(1));
  put(4, "1", "here", Failure("crashed"));
  TuningRecord old = Record(1);
  old.measured_at = "2001-01-01 00:00:00";
  put(5, "1", "here", old);
  EXPECT_EQ(database.Collect({}), 0);
  EXPECT_EQ(database.Collect({.versions = {{"acme", "1"}}, .machine = "here"}), 2);
  EXPECT_EQ(database.Collect({.before = "2002-01-01"}), 1);
  EXPECT_EQ(database.Collect({.failures = true}), 2);
  const TuningStats stats = database.Stats();
  EXPECT_EQ(stats.records, 3);
  EXPECT_EQ(stats.by_kind, (std::map<std::string, int64_t>{{"partition", 2}, {"schedule_list", 1}}));
  EXPECT_EQ(stats.by_toolchain, (std::map<std::string, int64_t>{{"acme", 2}, {"acme -level=2", 1}}));
}

TEST_P(TuningDatabaseTest, VerifyNamesRecordsThatMakeNoSense) {
  TuningDatabase database(place_);
  database.Put(Key(1), Record(1));
  database.Put(Key(2), Failure("declined"));
  EXPECT_TRUE(database.Verify().empty());
  TuningRecord torn = Record(1);
  torn.minimum = 2;
  database.Put(Key(3), torn);
  database.Put(Key(4), Failure(""));
  database.Put(ResultKey{PlayOffKey{"all", "one", "acme"}, "here", 1}, {.ok = true, .value = "{", .measured_at = ""});
  ASSERT_EQ(database.Verify().size(), 3u);
  EXPECT_NE(database.Verify()[0].find("workload-3"), std::string::npos);
}

TEST_P(TuningDatabaseTest, KeepsWhatIsNoTimeInTablesOfItsOwn) {
  const PartitionKey partition{"w", "p:p", "acme", "1", "m3", ""};
  const ResultKey list{ScheduleListKey{partition}, "here", 1};
  const ResultKey comparison{ComparisonKey{{partition, partition}}, "here", 1};
  const ResultKey play_off{PlayOffKey{"all", "one", "acme"}, "here", 1};
  {
    TuningDatabase database(place_);
    database.Put(list, {.ok = true, .value = R"(["rows=3"])", .measured_at = "2026-01-01 00:00:00"});
    database.Put(comparison, ResultRecord());
    database.Put(play_off, {.ok = false, .value = R"({"reason":"it's wrong"})", .measured_at = ""});
    database.Put(TuningKey{partition, "here", 1}, Record(1));
  }
  TuningDatabase database(place_);
  EXPECT_EQ(database.Find(list)->value, R"(["rows=3"])");
  EXPECT_EQ(database.Find(list)->measured_at, "2026-01-01 00:00:00");
  EXPECT_TRUE(database.Find(comparison)->ok);
  EXPECT_FALSE(database.Find(play_off)->ok);
  EXPECT_EQ(database.Find(play_off)->value, R"({"reason":"it's wrong"})");
  EXPECT_FALSE(database.Find(ResultKey{PlayOffKey{"all", "one", "other"}, "here", 1}).has_value());
  for (const char* table : {"timing", "schedule_list", "comparison", "play_off"}) {
    EXPECT_EQ(OpenStore()->Query(std::string("SELECT COUNT(*) FROM ") + table)[0][0], "1") << table;
  }
}

TEST_P(TuningDatabaseTest, KeepsHowCompilationsEnded) {
  CompilationRecord record;
  record.model = "mnist.onnx";
  record.winner = "collage";
  record.seconds = 0.001;
  record.additive_error = -2e-5;
  record.apparent_loss = R"({"acme":-0.0001})";
  record.compiled_at = "2026-01-31 23:59:59";
  TuningDatabase(place_).Put(record);
  record.optimality_loss = 1.0 / 3;
  record.compiled_at = "2026-02-01 00:00:00";
  TuningDatabase(place_).Put(record);
  const std::vector<CompilationRecord> all = TuningDatabase(place_).Compilations();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].compiled_at, "2026-01-31 23:59:59");
  EXPECT_FALSE(all[0].optimality_loss.has_value()) << "not feasible";
  EXPECT_EQ(all[1].optimality_loss, 1.0 / 3);
  EXPECT_EQ(all[0].model, "mnist.onnx");
  EXPECT_EQ(all[0].additive_error, -2e-5);
  EXPECT_EQ(all[0].apparent_loss, record.apparent_loss);
}

TEST_P(TuningDatabaseTest, EightProcessesAtOnceLoseNothing) {
  constexpr int kProcesses = 8;
  constexpr int kRecords = 40;
  std::vector<pid_t> children;
  for (int child = 0; child < kProcesses; ++child) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    try {  // all begin at once, with a store that is not there yet
      TuningDatabase database(place_);
      for (int i = 0; i < kRecords; ++i) {
        database.Put(Key(child * 1000 + i), Record(child + i));
        database.Put(Key(-1), Record(child));  // all write this one
      }
      _exit(0);
    } catch (const std::exception& error) {
      fprintf(stderr, "process %d: %s\n", child, error.what());
      _exit(1);
    }
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  TuningDatabase database(place_);
  EXPECT_TRUE(database.notices().empty());
  EXPECT_TRUE(database.Verify().empty());
  EXPECT_EQ(database.Stats().records, kProcesses * kRecords + 1);
  for (int child = 0; child < kProcesses; ++child) {
    for (int i = 0; i < kRecords; ++i) {
      const std::optional<TuningRecord> record = database.Find(Key(child * 1000 + i));
      ASSERT_TRUE(record.has_value());
      EXPECT_EQ(record->p50, child + i);
      EXPECT_EQ(record->label, "conv");
    }
  }
}

TEST_P(TuningDatabaseTest, FiftyKillsAtRandomLoseNothingFinished) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      TuningDatabase database(place_);
      for (int i = 0;; ++i) {
        database.Put(Key(round * 10'000 + i), Record(i));
        if (write(pipe_ends[1], "x", 1) != 1) _exit(1);
      }
    }
    close(pipe_ends[1]);
    usleep(std::uniform_int_distribution<>(0, 30'000)(random));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    int finished = 0;
    char byte = 0;
    while (read(pipe_ends[0], &byte, 1) == 1) ++finished;
    close(pipe_ends[0]);
    TuningDatabase database(place_);
    EXPECT_TRUE(database.notices().empty());
    for (int i = 0; i < finished; ++i) {
      ASSERT_TRUE(database.Find(Key(round * 10'000 + i)).has_value()) << "round " << round << ", record " << i;
    }
  }
  EXPECT_TRUE(TuningDatabase(place_).Verify().empty());
}

TEST_P(TuningDatabaseTest, ANewerSchemaIsRefused) {
  { TuningDatabase create(place_); }
  OpenStore()->SetSchemaVersion(99);
  try {
    TuningDatabase database(place_);
    FAIL() << "opened a schema of the future";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kInput);
    EXPECT_NE(error.message().find("schema 99"), std::string::npos);
  }
}

TEST(TuningDatabaseFileTest, AnOldSchemaIsBroughtUpToDate) {
  const TemporaryFolder folder;
  const std::string path = (folder / "tuning.db").string();
  {
    const std::unique_ptr<SqlConnection> old = OpenSqlite(path);
    old->Query(R"(CREATE TABLE measurement (
        workload TEXT NOT NULL, layouts TEXT NOT NULL, toolchain TEXT NOT NULL, version TEXT NOT NULL,
        machine TEXT NOT NULL, num_threads INTEGER NOT NULL,
        ok INTEGER NOT NULL, minimum REAL, p50 REAL, p90 REAL, num_samples INTEGER, max_error REAL,
        label TEXT, reason TEXT, measured_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (workload, layouts, toolchain, version, machine, num_threads)) WITHOUT ROWID)");
    old->Query(
        "INSERT INTO measurement (workload, layouts, toolchain, version, machine, num_threads, ok, p50) "
        "VALUES ('workload-1', 'p:p', 'acme', '1/m3', 'machine', 1, 1, 0.25)");
    old->SetSchemaVersion(1);
  }
  TuningDatabase database(path);
  ASSERT_TRUE(database.Find(Key(1)).has_value());
  EXPECT_EQ(database.Find(Key(1))->p50, 0.25);
  EXPECT_EQ(database.Find(Key(1))->p99, 0);
  EXPECT_EQ(database.Find(Key(1))->Quantile(0.5), 0.25);
  EXPECT_EQ(database.Find(Key(1))->Quantile(0.99), 0.25);
  EXPECT_EQ(database.Find(Key(1))->drift, 0);
  EXPECT_TRUE(database.Verify().empty());
  EXPECT_EQ(database.Find(Key(1))->schedule, "");
  TuningRecord scheduled = Record(0.5);
  scheduled.schedule = "rows=3";
  database.Put(Key(1), scheduled);
  EXPECT_EQ(database.Find(Key(1))->p50, 0.5);
  EXPECT_EQ(database.Find(Key(1))->schedule, "rows=3");
  EXPECT_TRUE(database.Compilations().empty());
}

TEST(TuningDatabaseFileTest, CompilationsOfASchemaWithoutOptimalityLossAreKept) {
  const TemporaryFolder folder;
  const std::string path = (folder / "tuning.db").string();
  {
    const std::unique_ptr<SqlConnection> old = OpenSqlite(path);
    old->Query(R"(CREATE TABLE measurement (
        workload TEXT, layouts TEXT, toolchain TEXT, version TEXT, machine TEXT, num_threads INTEGER,
        ok INTEGER, minimum REAL, p50 REAL, p90 REAL, num_samples INTEGER, max_error REAL, label TEXT, reason TEXT,
        measured_at TEXT, p10 REAL, p25 REAL, p75 REAL, p99 REAL, half_width REAL, drift REAL))");
    old->Query(R"(CREATE TABLE compilation (
        model TEXT NOT NULL, machine TEXT NOT NULL, num_threads INTEGER NOT NULL, versions TEXT NOT NULL,
        winner TEXT NOT NULL, seconds DOUBLE PRECISION NOT NULL, additive_error DOUBLE PRECISION NOT NULL,
        apparent_loss TEXT NOT NULL, compiled_at TEXT NOT NULL))");
    old->Query(
        "INSERT INTO compilation VALUES ('mnist.onnx', 'here', 2, 'acme 1', 'collage', 0.25, 0.125, '{}', "
        "'2026-01-31 23:59:59')");
    old->SetSchemaVersion(3);
  }
  TuningDatabase database(path);
  CompilationRecord later = database.Compilations().at(0);
  EXPECT_EQ(later.winner, "collage");
  EXPECT_EQ(later.additive_error, 0.125);
  EXPECT_FALSE(later.optimality_loss.has_value());
  later.optimality_loss = 0.0;
  later.compiled_at = "2026-02-01 00:00:00";
  database.Put(later);
  ASSERT_EQ(database.Compilations().size(), 2u);
  EXPECT_EQ(database.Compilations()[1].optimality_loss, 0.0);
}

TEST(TuningDatabaseFileTest, SetsADamagedFileAside) {
  const TemporaryFolder folder;
  const std::string path = (folder / "tuning.db").string();
  std::ofstream(path) << std::string(5000, 'x');
  TuningDatabase database(path);
  ASSERT_EQ(database.notices().size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(path + ".corrupt-1"));
  database.Put(Key(1), Record(1));
  EXPECT_TRUE(database.Find(Key(1)).has_value());
}

/// The files of a folder, by name, with their contents.
std::map<std::string, std::string> ContentsOf(const TemporaryFolder& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    contents[entry.path().filename().string()] = ReadFile(entry.path());
  }
  return contents;
}

TEST(TuningDatabaseFileTest, ReadingChangesNoFile) {
  const TemporaryFolder folder;
  const std::string path = (folder / "tuning.db").string();
  TuningDatabase(path).Put(Key(1), Record(1));
  const auto before = ContentsOf(folder);
  {
    TuningDatabase database = TuningDatabase::ForReading(path);
    EXPECT_EQ(database.Find(Key(1))->p50, 1);
    EXPECT_THROW(database.Put(Key(2), Record(2)), Error);
  }
  EXPECT_EQ(TuningDatabase::Check(path).records, 1);
  EXPECT_EQ(ContentsOf(folder), before);
}

TEST(TuningDatabaseFileTest, ReadingLeavesADamagedFileWhereItIs) {
  const TemporaryFolder folder;
  const std::string path = (folder / "tuning.db").string();
  std::ofstream(path) << std::string(5000, 'x');
  const auto before = ContentsOf(folder);
  try {
    TuningDatabase::ForReading(path);
    FAIL() << "read a damaged file";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt);
    EXPECT_EQ(error.hint(), "the next compilation keeps it under another name and begins a new one");
  }
  const StoreCheck check = TuningDatabase::Check(path);
  ASSERT_EQ(check.problems.size(), 1u);
  EXPECT_NE(check.problems[0].find("the tuning database is damaged"), std::string::npos);
  EXPECT_EQ(ContentsOf(folder), before);
  EXPECT_THROW(TuningDatabase::ForReading((folder / "none.db").string()), Error);
  EXPECT_THROW(TuningDatabase::OpenExisting((folder / "none.db").string()), Error);
  EXPECT_EQ(ContentsOf(folder), before);
}

TEST(TuningDatabaseFileTest, ReadingAnOlderSchemaLeavesTheFileOld) {
  const TemporaryFolder folder;
  const std::string path = (folder / "tuning.db").string();
  TuningDatabase(path).Put(Key(1), Record(1));
  {
    const std::unique_ptr<SqlConnection> store = OpenSqlite(path);
    store->Query("DROP TABLE machine");
    store->SetSchemaVersion(6);
  }
  const auto before = ContentsOf(folder);
  const TuningStats stats = TuningDatabase::ForReading(path).Stats();
  EXPECT_EQ(stats.records, 1);
  EXPECT_EQ(stats.bytes, static_cast<int64_t>(before.at("tuning.db").size()));
  EXPECT_EQ(ContentsOf(folder), before);
}

TEST(TuningDatabaseFileTest, AFolderThatCannotBeMadeIsAClearError) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  try {
    TuningDatabase database((folder / "file" / "tuning.db").string());
    FAIL() << "opened a database below a file";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kResource);
  }
}

TEST(TuningDatabaseServerTest, AServerThatIsNotThereIsAClearError) {
  try {
    TuningDatabase database("postgresql://me:secret@localhost:1/nowhere");
    FAIL() << "reached a server on port 1";
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "postgresql://me@localhost:1/nowhere");
    EXPECT_EQ(error.Format().find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace collage
