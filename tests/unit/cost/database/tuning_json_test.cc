#include "cost/database/tuning_json.h"

#include <gtest/gtest.h>

#include <sstream>

#include "collage/support/error.h"
#include "support/file.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

class TuningJsonTest : public testing::Test {
 protected:
  TuningDatabase Open(const std::string& name) { return TuningDatabase((folder_ / name).string()); }

  static TuningKey Key(int i) {
    return {PartitionKey{"w" + std::to_string(i), "p:p", "acme", "1", "m5.0", std::nullopt}, "machine", 2};
  }
  static TuningRecord Record(double seconds, const std::string& when) {
    TuningRecord record;
    record.ok = true;
    record.minimum = record.p50 = record.p90 = seconds;
    record.num_samples = 3;
    record.max_error = 1e-7;
    record.label = "a \"label\"\n";
    record.measured_at = when;
    return record;
  }

  TemporaryFolder folder_;
};

TEST_F(TuningJsonTest, WhatIsExportedIsImported) {
  TuningDatabase one = Open("one.db");
  TuningRecord good = Record(1.0 / 3, "2026-01-01 00:00:00");
  good.p75 = 0.4;
  good.p99 = good.p90 = 0.5;
  good.half_width = 0.125;
  good.schedule = "rows=3";
  good.drift = 1.25;
  one.Put(Key(1), good);
  TuningRecord failure;
  failure.reason = "crashed with signal 11";
  failure.measured_at = "2026-01-02 00:00:00";
  one.Put(Key(2), failure);
  std::ostringstream out;
  const ResultKey play_off{PlayOffKey{"all", "one", "acme"}, "machine", 2};
  one.Put(play_off, {.ok = true, .value = R"({"p50":0.5})", .measured_at = "2026-01-03 00:00:00"});
  EXPECT_EQ(ExportRecords(one, out), 3);

  TuningDatabase other = Open("other.db");
  std::istringstream in(out.str());
  const ImportCounts counts = ImportRecords(other, in, "file");
  EXPECT_EQ(counts.read, 3);
  EXPECT_EQ(counts.taken, 3);
  EXPECT_TRUE(counts.dropped.empty());
  EXPECT_EQ(other.Find(play_off)->value, R"({"p50":0.5})");
  EXPECT_EQ(other.Find(Key(1))->p50, 1.0 / 3);
  EXPECT_EQ(other.Find(Key(1))->p75, 0.4);
  EXPECT_EQ(other.Find(Key(1))->p25, 0);  // not known
  EXPECT_EQ(other.Find(Key(1))->half_width, 0.125);
  EXPECT_EQ(other.Find(Key(1))->schedule, "rows=3");
  EXPECT_EQ(other.Find(Key(1))->drift, 1.25);
  EXPECT_EQ(other.Find(Key(1))->label, "a \"label\"\n");
  EXPECT_EQ(other.Find(Key(2))->reason, "crashed with signal 11");
  std::ostringstream again;
  ExportRecords(other, again);
  EXPECT_EQ(again.str(), out.str());
}

TEST_F(TuningJsonTest, FieldsThatMayBeMissingAreUnknown) {
  TuningDatabase database = Open("one.db");
  std::istringstream in(R"({"format":"collage-tuning","version":2}
{"key":)" + ToText(Key(1)) +
                        R"(,"ok":true,"minimum":0.1,"p50":0.2,"p90":0.3,"num_samples":7,"max_error":0.0,"reason":""}
)");
  EXPECT_EQ(ImportRecords(database, in, "file").taken, 1);
  EXPECT_EQ(database.Find(Key(1))->p90, 0.3);
  EXPECT_EQ(database.Find(Key(1))->p99, 0);
  EXPECT_EQ(database.Find(Key(1))->half_width, 0);
  EXPECT_EQ(database.Find(Key(1))->schedule, "");
}

TEST_F(TuningJsonTest, ALaterVersionIsRefused) {
  TuningDatabase database = Open("one.db");
  std::istringstream in(R"({"format":"collage-tuning","version":3})");
  ExpectError([&] { ImportRecords(database, in, "file"); }, ErrorCategory::kInput, "use a newer Collage");
}

TEST_F(TuningJsonTest, MergingTakesTheNewer) {
  TuningDatabase into = Open("into.db");
  TuningDatabase from = Open("from.db");
  into.Put(Key(1), Record(1, "2026-01-01 00:00:00"));
  from.Put(Key(1), Record(2, "2026-01-02 00:00:00"));
  into.Put(Key(2), Record(1, "2026-01-02 00:00:00"));
  from.Put(Key(2), Record(2, "2026-01-01 00:00:00"));
  from.Put(Key(3), Record(2, "2026-01-01 00:00:00"));
  const ImportCounts counts = MergeRecords(into, from);
  EXPECT_EQ(counts.read, 3);
  EXPECT_EQ(counts.taken, 2);
  EXPECT_EQ(into.Find(Key(1))->p50, 2);
  EXPECT_EQ(into.Find(Key(2))->p50, 1);
}

TEST_F(TuningJsonTest, WhatIsNoRecordIsNamedByLine) {
  TuningDatabase database = Open("one.db");
  std::istringstream empty("");
  EXPECT_THROW(ImportRecords(database, empty, "file"), Error);
  for (const char* text : {R"({"format": "collage-tuning", "version": 1}
{"workload": "w"})",
                           R"({"format": "collage-tuning", "version": 2}
{"key": {"kind": "luck", "machine": "x86", "threads": 1}, "ok": true})"}) {
    std::istringstream torn(text);
    ExpectError([&] { ImportRecords(database, torn, "file"); }, ErrorCategory::kInput, "file:2: error: no record: ");
  }
}

}  // namespace
}  // namespace collage
