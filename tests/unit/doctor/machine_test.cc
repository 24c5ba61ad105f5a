// machine_test.cc: findings about machines that files describe.
#include "doctor/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/file.h"

namespace collage {
namespace {

using State = Finding::State;

/// A root folder with files of /proc and /sys.
class MachineFiles : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    std::filesystem::create_directories((folder_.path() / path).parent_path());
    WriteFile(folder_.path() / path, content);
  }

  Finding Of(const std::string& subject) {
    const std::vector<Finding> findings = ExamineMachine(folder_.path());
    const auto found = std::ranges::find(findings, subject, &Finding::subject);
    return found == findings.end() ? Finding{"", State::kFine, "", ""} : *found;
  }

  TemporaryFolder folder_;
};

TEST_F(MachineFiles, AMachineThatSaysNothingIsNoProblem) {
  EXPECT_EQ(Of("frequency").state, State::kNote);
  EXPECT_EQ(Of("load").state, State::kFine);
  EXPECT_EQ(Of("huge pages").state, State::kNote);
  EXPECT_EQ(Of("counters").state, State::kNote);
  EXPECT_EQ(Of("stolen time").subject, "");
}

TEST_F(MachineFiles, AGovernorThatSavesPowerIsAProblem) {
  Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  EXPECT_EQ(Of("frequency").state, State::kProblem);
  EXPECT_THAT(Of("frequency").text, testing::HasSubstr("powersave"));
  Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  EXPECT_EQ(Of("frequency").state, State::kFine);
}

TEST_F(MachineFiles, OtherProcessesAreCountedWithoutThisOne) {
  Write("proc/stat", "cpu 100 0 0 100 0 0 0 0 0 0\nprocs_running 1\n");
  EXPECT_EQ(BusyProcesses(0.01, folder_.path()), 0);
  Write("proc/stat", "cpu 100 0 0 100 0 0 0 0 0 0\nprocs_running 4\n");
  EXPECT_EQ(BusyProcesses(0.01, folder_.path()), 3);
  EXPECT_EQ(Of("load").state, State::kProblem);
}

TEST_F(MachineFiles, TimeThatOtherMachinesTakeIsAShare) {
  Write("proc/stat", "cpu 80 0 10 1000 0 0 0 10 0 0\nprocs_running 1\n");
  EXPECT_EQ(Of("stolen time").state, State::kProblem);
  EXPECT_THAT(Of("stolen time").text, testing::StartsWith("10.0 %"));
  Write("proc/stat", "cpu 999 0 0 1000 0 0 0 1 0 0\nprocs_running 1\n");
  EXPECT_EQ(Of("stolen time").state, State::kFine);
}

TEST_F(MachineFiles, AQuotaBelowTheProcessorsIsAProblem) {
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_NE(Of("processors").state, State::kProblem);
  Write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(Of("processors").state, State::kProblem);
  EXPECT_THAT(Of("processors").text, testing::HasSubstr("allows 0.5 of them"));
}

TEST_F(MachineFiles, MemoryAndHugePagesAreRead) {
  Write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
  EXPECT_EQ(Of("memory").state, State::kFine);
  EXPECT_THAT(Of("memory").text, testing::HasSubstr("8.2 GB of 16.4 GB available"));
  Write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 800000 kB\n");
  EXPECT_EQ(Of("memory").state, State::kProblem);
  Write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  EXPECT_EQ(Of("huge pages").text, "transparent ones: madvise");
  Write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(Of("huge pages").state, State::kProblem);
}

TEST(Steadiness, OfARealProcessorIsMeasured) {
  const Finding finding = ExamineSteadiness(0.05);
  EXPECT_THAT(finding.text, testing::ContainsRegex("of [0-9]+ equal loops"));
}

}  // namespace
}  // namespace collage
