// Stores of schemas before 6, and files of version 1, whose keys were six texts.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "cost/database/legacy_records.h"
#include "cost/database/tuning_database.h"
#include "cost/database/tuning_json.h"
#include "unit/cost/database/store_test.h"

namespace collage {
namespace {

constexpr const char* kMachine = "x86-64-1";

/// A row of the table `measurement`, and the key that it has now.
struct OldRow {
  std::string workload, layouts, toolchain, version;
  std::string label;
  std::variant<TuningKey, ResultKey> key;
};

template <typename Subject>
TuningKey Timing(Subject subject) {
  return {std::move(subject), kMachine, 2};
}
template <typename Subject>
ResultKey Other(Subject subject) {
  return {std::move(subject), kMachine, 2};
}

/// One row of each kind, in the words of the release before.
std::vector<OldRow> OldRows() {
  const PartitionKey relu{"00aa", "pc:c", "native", "22.1+ab", "m5.2", std::nullopt};
  const PartitionKey dense{"11bb", "pc:c", "vino -exact=1", "2026.3-releases/2026 of May+cd", "m5.2.p90.r1", {}};
  const auto by = [](PartitionKey partition, const std::string& schedule) {
    partition.schedule = schedule;
    return partition;
  };
  const std::string dense_version = "2026.3-releases/2026 of May+cd/m5.2.p90.r1";
  const std::string result = R"({"first_relative":1.5,"is_finalist":true,"partitions":{"native":3},"relative":0.5})";
  return {
      {"00aa", "pc:c", "native", "22.1+ab/m5.2", "native: relu", Timing(relu)},
      {"11bb", "pc:c", "vino -exact=1", dense_version, "vino: dense", Timing(dense)},
      {"22cc", "p:p", "native", "3", "", Timing(PartitionKey{"22cc", "p:p", "native", "3", "", {}})},
      {"00aa", "pc:c", "native", "22.1+ab/m5.2 by default", "", Timing(by(relu, ""))},
      {"00aa", "pc:c", "native", "22.1+ab/m5.2 by rows=3 width=2", "", Timing(by(relu, "rows=3 width=2"))},
      {"00aa", "pc:c", "native", "22.1+ab/m5.2 by default near", "rows=3\nrows=4",
       Other(ScheduleListKey{by(relu, "")})},
      {"00aa", "pc:c", "native", "22.1+ab/m5.2 by rows=3 near", "", Other(ScheduleListKey{by(relu, "rows=3")})},
      {"00aa", "pc:c", "native", "22.1+ab/m5.2 by default or rows=3", "",
       Other(ComparisonKey{{by(relu, ""), by(relu, "rows=3")}})},
      {"settled 00aa 11bb", "pc:c", "host", "m5 native 22.1+ab/m5.2 rows=3 width=2 vino -exact=1 " + dense_version, "",
       Other(ComparisonKey{{by(relu, "rows=3 width=2"), by(dense, "")}})},
      {"settled 11bb 00aa", "pc:c", "host", "m5 vino -exact=1 " + dense_version + " native 22.1+ab/m5.2 plain", "",
       Other(ComparisonKey{{by(dense, ""), by(relu, "plain")}})},
      {"smallest call", ":", "native", "22.1+ab/m5.2", "",
       Timing(ProbeKey{"smallest call", "native", "22.1+ab", "m5.2"})},
      {"probe moving", ":", "native", "22.1+ab/m5.2", "", Timing(ProbeKey{"moving", "native", "22.1+ab", "m5.2"})},
      {"handover from vino -exact=1 2026 of May", "", "native", "22.1+ab/m5.2", "",
       Timing(SwitchKey{"vino -exact=1", "2026 of May", "native", "22.1+ab", "m5.2"})},
      {"rate near", "", "host", "m5", "", Timing(RateKey{"near", "m5"})},
      {"empty hop", "", "host", "m5", "", Timing(TransitionKey{"m5"})},
      {"convert (1, 8, 4, 4) float32", "plain:channels_last", "host", "m5", "",
       Timing(ConversionKey{"(1, 8, 4, 4)", "float32", "plain", "channels_last", "m5"})},
      {"33dd", "44ee", "end to end", "55ff", "", Timing(CoverKey{"33dd", "44ee", "55ff"})},
      {"66aa", "77bb", "play-off", "collage-2", result, Other(PlayOffKey{"77bb", "66aa", "collage-2"})},
  };
}

/// Rows that no key can be made of, as many as there are reasons.
std::vector<OldRow> WrongRows() {
  return {{"settled 00aa 99ff", "pc:c", "host", "m5 native 22.1+ab/m5.2 gone 1/m5.2", "", {}},
          {"temperature", "", "host", "m5", "", {}},
          {"66aa", "77bb", "play-off", "native", "no JSON", {}}};
}

class MigrationTest : public StoreTest {
 protected:
  /// Makes a store of schema 5 that holds `rows`. Times are 0.25 and more by their number.
  void Write(const std::vector<OldRow>& rows) const {
    const std::unique_ptr<SqlConnection> old = OpenStore();
    old->Query(R"(CREATE TABLE measurement (
        workload TEXT NOT NULL, layouts TEXT NOT NULL, toolchain TEXT NOT NULL, version TEXT NOT NULL,
        machine TEXT NOT NULL, num_threads INTEGER NOT NULL,
        ok INTEGER NOT NULL, minimum DOUBLE PRECISION, p50 DOUBLE PRECISION, p90 DOUBLE PRECISION,
        num_samples BIGINT, max_error DOUBLE PRECISION,
        label TEXT, reason TEXT, measured_at TEXT NOT NULL, p10 DOUBLE PRECISION, p25 DOUBLE PRECISION,
        p75 DOUBLE PRECISION, p99 DOUBLE PRECISION, half_width DOUBLE PRECISION, drift DOUBLE PRECISION, schedule TEXT,
        PRIMARY KEY (workload, layouts, toolchain, version, machine, num_threads)))");
    old->Query(R"(CREATE TABLE compilation (
        model TEXT NOT NULL, machine TEXT NOT NULL, num_threads INTEGER NOT NULL, versions TEXT NOT NULL,
        winner TEXT NOT NULL, seconds DOUBLE PRECISION NOT NULL, additive_error DOUBLE PRECISION NOT NULL,
        apparent_loss TEXT NOT NULL, compiled_at TEXT NOT NULL, optimality_loss DOUBLE PRECISION))");
    old->Query("INSERT INTO compilation VALUES ('mnist', 'here', 2, 'acme 1', 'collage', 1, 0, '{}', '2026-01-31', 0)");
    for (size_t i = 0; i < rows.size(); ++i) {
      const OldRow& row = rows[i];
      old->Query(
          "INSERT INTO measurement (workload, layouts, toolchain, version, machine, num_threads, ok, minimum, p50, "
          "p90, "
          "num_samples, max_error, label, reason, measured_at) "
          "VALUES ($1, $2, $3, $4, $5, 2, 1, 0.125, $6, 99, 7, 0, $7, '', '2026-01-31 23:59:59')",
          {row.workload, row.layouts, row.toolchain, row.version, kMachine, std::to_string(SecondsOf(i)), row.label});
    }
    old->SetSchemaVersion(5);
  }

  static double SecondsOf(size_t row) { return 0.25 + static_cast<double>(row); }

  /// Expects that `database` holds OldRows() and nothing else.
  static void ExpectAll(TuningDatabase& database) {
    const std::vector<OldRow> rows = OldRows();
    for (size_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(rows[i].workload + " | " + rows[i].version);
      if (const auto* key = std::get_if<TuningKey>(&rows[i].key)) {
        const std::optional<TuningRecord> found = database.Find(*key);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->p50, SecondsOf(i));
        EXPECT_EQ(found->num_samples, 7);
        EXPECT_EQ(found->label, rows[i].label);
        EXPECT_EQ(found->measured_at, "2026-01-31 23:59:59");
      } else {
        const std::optional<ResultRecord> found = database.Find(std::get<ResultKey>(rows[i].key));
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->measured_at, "2026-01-31 23:59:59");
      }
    }
    EXPECT_EQ(database.Stats().records, static_cast<int64_t>(rows.size()));
    EXPECT_TRUE(database.Verify().empty());
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, MigrationTest, testing::Values(Store::kSqlite, Store::kPostgres), NameOfStore);

TEST_P(MigrationTest, EveryKindOfOldRecordIsFound) {
  Write(OldRows());
  TuningDatabase database(place_);
  EXPECT_TRUE(database.notices().empty());
  ExpectAll(database);
  EXPECT_EQ(database.Compilations().size(), 1u);
  const PartitionKey relu{"00aa", "pc:c", "native", "22.1+ab", "m5.2", ""};
  EXPECT_EQ(database.Find(Other(ScheduleListKey{relu}))->value, R"(["rows=3","rows=4"])");
  EXPECT_EQ(database.Find(Other(PlayOffKey{"77bb", "66aa", "collage-2"}))->value,
            R"({"first_relative":1.5,"is_finalist":true,"max_error":0.0,"minimum":0.125,"num_samples":7,"p50":17.25,)"
            R"("p90":99.0,"partitions":{"native":3},"reason":"","relative":0.5})");
}

TEST_P(MigrationTest, WhatCannotBeTranslatedIsCounted) {
  std::vector<OldRow> rows = OldRows();
  for (const OldRow& wrong : WrongRows()) rows.push_back(wrong);
  Write(rows);
  TuningDatabase database(place_);
  ExpectAll(database);
  ASSERT_EQ(database.notices().size(), 3u);
  EXPECT_EQ(database.notices()[0],
            "dropped from the tuning database while it was brought up to date: 1 x a comparison of partitions that the "
            "store does not have");
  EXPECT_TRUE(TuningDatabase(place_).notices().empty()) << "said once";
}

TEST_P(MigrationTest, ProcessesThatOpenAnOldStoreAtOnceAllFindItsRecords) {
  Write(OldRows());
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    try {
      TuningDatabase database(place_);
      ExpectAll(database);
      _exit(HasFailure() ? 1 : 0);
    } catch (const std::exception& error) {
      fprintf(stderr, "process %d: %s\n", i, error.what());
      _exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_P(MigrationTest, FilesOfVersion1AreRead) {
  std::string file = R"({"format":"collage-tuning","version":1})";
  std::vector<OldRow> rows = OldRows();
  for (const OldRow& wrong : WrongRows()) rows.push_back(wrong);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string label;
    for (const char c : rows[i].label) label += c == '\n' ? "\\n" : (c == '"' ? "\\\"" : std::string(1, c));
    file += "\n{\"workload\":\"" + rows[i].workload + "\",\"layouts\":\"" + rows[i].layouts + "\",\"toolchain\":\"" +
            rows[i].toolchain + "\",\"version\":\"" + rows[i].version + "\",\"machine\":\"" + kMachine +
            "\",\"threads\":2,\"label\":\"" + label +
            "\",\"ok\":true,\"measured_at\":\"2026-01-31 23:59:59\",\"min_seconds\":0.125,\"p50_seconds\":" +
            std::to_string(SecondsOf(i)) + ",\"p90_seconds\":99,\"samples\":7,\"max_error\":0}";
  }
  TuningDatabase database(place_);
  std::istringstream in(file);
  const ImportCounts counts = ImportRecords(database, in, "file");
  EXPECT_EQ(counts.read, static_cast<int64_t>(rows.size()));
  EXPECT_EQ(counts.taken, static_cast<int64_t>(OldRows().size()));
  EXPECT_EQ(counts.dropped.size(), 3u);
  ExpectAll(database);
}

}  // namespace
}  // namespace collage
