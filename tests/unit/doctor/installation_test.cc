// installation_test.cc: what is said of toolchains, the database and caches.
#include "doctor/installation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cost/database/tuning_database.h"
#include "support/file.h"

namespace collage {
namespace {

using State = Finding::State;

Finding Of(const std::vector<Finding>& findings, const std::string& subject) {
  const auto found = std::ranges::find(findings, subject, &Finding::subject);
  return found == findings.end() ? Finding{} : *found;
}

TEST(Installation, ADatabaseThatIsNotThereIsNotCreated) {
  const TemporaryFolder folder;
  const std::string place = (folder.path() / "none" / "tuning.db").string();
  const std::vector<Finding> findings = ExamineInstallation(place);
  EXPECT_EQ(Of(findings, "tuning database").state, State::kNote);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "none"));
  EXPECT_NE(Of(findings, "toolchains").text, "");
}

TEST(Installation, ADatabaseIsOpened) {
  const TemporaryFolder folder;
  const std::string place = (folder.path() / "tuning.db").string();
  { TuningDatabase made(place); }
  const Finding finding = Of(ExamineInstallation(place), "tuning database");
  EXPECT_EQ(finding.state, State::kFine);
  EXPECT_THAT(finding.text, testing::HasSubstr("0 records"));
}

TEST(Installation, ADamagedDatabaseIsAProblemAndStaysAsItIs) {
  const TemporaryFolder folder;
  const std::string place = (folder.path() / "tuning.db").string();
  const std::string content(5000, 'x');
  WriteWhole(place, content);
  const Finding finding = Of(ExamineInstallation(place), "tuning database");
  EXPECT_EQ(finding.state, State::kProblem);
  EXPECT_THAT(finding.text, testing::HasSubstr("the tuning database is damaged"));
  EXPECT_EQ(ReadFile(place), content);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Installation, ADatabaseThatCannotBeWrittenIsAProblem) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write to every file";
  const TemporaryFolder folder;
  const std::string place = (folder.path() / "tuning.db").string();
  { TuningDatabase made(place); }
  std::filesystem::permissions(place, std::filesystem::perms::owner_read);
  const Finding finding = Of(ExamineInstallation(place), "tuning database");
  EXPECT_EQ(finding.state, State::kProblem);
  EXPECT_THAT(finding.text, testing::HasSubstr("can be read, but not written"));
}

TEST(Installation, AFolderIsNoDatabase) {
  const TemporaryFolder folder;
  EXPECT_EQ(Of(ExamineInstallation("/proc/tuning.db/x"), "tuning database").state, State::kNote);
  EXPECT_EQ(Of(ExamineInstallation(folder.path().string()), "tuning database").state, State::kProblem);
}

}  // namespace
}  // namespace collage
