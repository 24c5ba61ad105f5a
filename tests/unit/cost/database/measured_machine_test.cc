// Machines whose measurements were brought into a database.
#include "cost/database/measured_machine.h"

#include <gtest/gtest.h>

#include "collage/support/error.h"
#include "support/file.h"

namespace collage {
namespace {

TEST(MeasuredMachineTest, IsFoundByItsNameAndReplaced) {
  const TemporaryFolder folder;
  TuningDatabase database((folder / "tuning.db").string());
  Put(database, {"bench", "x86-64-1", "a processor", 4, 100, 200, {{"gpu", "1 on A"}}, {{"gpu", "1"}}});
  Put(database, {"other", "x86-64-2", "another", 8, 300, 400, {}, {}});
  const MeasuredMachine found = FindMachine(database, "bench");
  EXPECT_EQ(found.fingerprint, "x86-64-1");
  EXPECT_EQ(found.num_threads, 4);
  EXPECT_EQ(found.near_bytes, 100);
  EXPECT_EQ(found.shared_bytes, 200);
  EXPECT_EQ(found.versions.at("gpu"), "1 on A");
  EXPECT_EQ(found.compilers.at("gpu"), "1");

  Put(database, {"bench", "x86-64-1", "a processor", 4, 100, 200, {{"gpu", "2 on A"}}, {{"gpu", "2"}}});
  EXPECT_EQ(FindMachine(database, "bench").versions.at("gpu"), "2 on A");
  EXPECT_EQ(MeasuredMachines(database).size(), 2U);
  EXPECT_TRUE(database.Verify().empty());
}

TEST(MeasuredMachineTest, AnUnknownNameIsAnErrorThatNamesTheOthers) {
  const TemporaryFolder folder;
  TuningDatabase database((folder / "tuning.db").string());
  const auto error_of = [&]() -> Error {
    try {
      FindMachine(database, "bench");
    } catch (const Error& error) {
      return error;
    }
    return {ErrorCategory::kInternal, "nothing was thrown"};
  };
  EXPECT_EQ(error_of().category(), ErrorCategory::kInput);
  EXPECT_NE(error_of().hint().find("collage measure"), std::string::npos);
  Put(database, {"other", "x86-64-2", "another", 8, 300, 400, {}, {}});
  EXPECT_EQ(error_of().hint(), "there are: other");
}

}  // namespace
}  // namespace collage
