#include "cost/tuning_database.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "collage/support/error.h"

namespace collage {
namespace {

class TuningDatabaseTest : public testing::Test {
 protected:
  TuningDatabaseTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "collage-db-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~TuningDatabaseTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path path() const { return folder_ / "tuning.db"; }

  std::filesystem::path folder_;
};

TuningKey Key(int i) { return {"workload-" + std::to_string(i), "p:p", "acme", "1", "machine", 1}; }

TuningRecord Record(double seconds) {
  TuningRecord record;
  record.ok = true;
  record.p50 = seconds;
  record.label = "conv";
  return record;
}

TEST_F(TuningDatabaseTest, RemembersBetweenOpenings) {
  TuningDatabase(path()).Put(Key(1), Record(0.25));
  TuningDatabase again(path());
  ASSERT_TRUE(again.Find(Key(1)).has_value());
  EXPECT_DOUBLE_EQ(again.Find(Key(1))->p50, 0.25);
  EXPECT_FALSE(again.Find(Key(2)).has_value());
  EXPECT_EQ(again.Stats().records, 1);
}

TEST_F(TuningDatabaseTest, SetsADamagedFileAside) {
  std::ofstream(path()) << std::string(5000, 'x');
  TuningDatabase database(path());
  ASSERT_EQ(database.notices().size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(path().string() + ".corrupt-1"));
  database.Put(Key(1), Record(1));
  EXPECT_TRUE(database.Find(Key(1)).has_value());
}

TEST_F(TuningDatabaseTest, ProcessesShareAFileAndAKilledOneLosesNothingFinished) {
  { TuningDatabase create(path()); }
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    children.push_back(fork());
    if (children.back() == 0) {
      TuningDatabase database(path());
      for (int i = 0; i < 20; ++i) database.Put(Key(child * 100 + i), Record(i));
      kill(getpid(), SIGKILL);
    }
  }
  for (pid_t child : children) waitpid(child, nullptr, 0);
  TuningDatabase database(path());
  EXPECT_TRUE(database.notices().empty());
  EXPECT_EQ(database.Stats().records, 80);
}

TEST_F(TuningDatabaseTest, AFolderThatCannotBeMadeIsAClearError) {
  std::ofstream(folder_ / "file") << "x";
  try {
    TuningDatabase database(folder_ / "file" / "tuning.db");
    FAIL() << "opened a database below a file";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kResource);
  }
}

}  // namespace
}  // namespace collage
