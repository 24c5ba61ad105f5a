// A search that goes on writes what is best so far, and one that is stopped leaves it.
#include "driver/phases/checkpoints.h"

#include <gtest/gtest.h>

#include <limits>

#include "collage/compile.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "collage/vm/vm.h"
#include "explain/explanation_file.h"
#include "support/file.h"

namespace collage {
namespace {

/// Does something when an executable is written, and before each measurement.
class Watcher : public CompileProgress {
 public:
  void Phase(const std::string& name) override {
    num_first += name == "checkpoint" && num_measured == 0 ? 1 : 0;
    num_imports += name == "import" ? 1 : 0;
  }
  void Measuring(int64_t measured, int64_t, const std::string&) override { num_measured = measured; }
  void Written(double seconds, std::optional<double> gap) override {
    EXPECT_GT(seconds, 0);
    EXPECT_LE(gap.value_or(0), 1);
    if (is_program) {
      EXPECT_NO_THROW(vm::Executable::Load(output).CheckConstants());
    } else {
      EXPECT_NO_THROW(Executable::Verify(output));
    }
    ++num_written;
  }
  void PlayOff(int, int, const std::string& what) override { is_timing = is_timing || what == "timing"; }
  void Warn(const std::string&) override {}

  std::filesystem::path output;
  bool is_program = false;
  int num_imports = 0;
  int64_t num_measured = 0;
  int num_written = 0;
  int num_first = 0;  ///< comparisons before anything is measured
  bool is_timing = false;
};

class CheckpointsTest : public testing::Test {
 protected:
  CheckpointsTest() {
    options_.output = watcher_.output = folder_ / "model.clg";
    options_.database = (folder_ / "tuning.db").string();
    options_.num_threads = 1;
    options_.toolchains = {"native"};
    options_.progress = &watcher_;
  }

  /// A chain of products that all differ.
  CompileReport Compile() {
    std::string text =
        "def @main(%x: Tensor[(4, 32), float32], %w: Tensor[(32, 32), float32]) {\n  %0 = nn.relu(%x);\n";
    constexpr int kProducts = 6;
    for (int i = 1; i <= kProducts; ++i) {
      text += "  %" + std::to_string(2 * i - 1) + " = nn.dense(%" + std::to_string(2 * i - 2) + ", %w);\n";
      text += "  %" + std::to_string(2 * i) + " = clip(%" + std::to_string(2 * i - 1) +
              ", a_min=0.0, a_max=" + std::to_string(i) + ".5);\n";
    }
    text += "  %" + std::to_string(2 * kProducts) + "\n}";
    return CompileModule(ParseModule(text, "chain"), "chain", options_);
  }

  TemporaryFolder folder_;
  Watcher watcher_;
  CompileOptions options_;
};

TEST_F(CheckpointsTest, TheNextIsDueAfterThePauseThatEarnsIt) {
  Checkpoints checkpoints;
  EXPECT_FALSE(checkpoints.IsDue());
  checkpoints.Begin(0);
  EXPECT_TRUE(checkpoints.IsDue());
  EXPECT_TRUE(checkpoints.is_due_at_once());
  EXPECT_FALSE(checkpoints.PausesSearch());  // outside of one
  checkpoints.searches = true;
  EXPECT_TRUE(checkpoints.PausesSearch());
  checkpoints.Made(/*seconds=*/0, /*search_seconds=*/0);
  EXPECT_FALSE(checkpoints.IsDue());
  EXPECT_FALSE(checkpoints.is_due_at_once());
}

TEST_F(CheckpointsTest, ThereIsAnExecutableBeforeAnythingIsMeasured) {
  options_.first_checkpoint_seconds = 0;
  const CompileReport report = Compile();
  EXPECT_GE(report.num_checkpoints, 1);
  EXPECT_GE(watcher_.num_written, 1);
  EXPECT_GT(report.num_measured, 0);
  EXPECT_FALSE(report.is_stopped);
  EXPECT_FALSE(report.budget_spent);  // a pause is none
  // With all costs known it is the one that wins, at once.
  const CompileReport again = Compile();
  EXPECT_EQ(again.num_measured, 0);
  EXPECT_EQ(again.winner, report.winner);
}

TEST_F(CheckpointsTest, TheFirstIsComparedWithTheChoicesOfOtherToolchains) {
  options_.first_checkpoint_seconds = 0;
  Compile();
  EXPECT_EQ(watcher_.num_first, 1);
  watcher_.num_first = 0;
  watcher_.num_measured = 0;
  options_.toolchains = {"native", "dnnl"};
  options_.database = (folder_ / "other.db").string();
  Compile();
  EXPECT_EQ(watcher_.num_first, 2);
  // A small budget is not spent on it.
  watcher_.num_first = 0;
  watcher_.num_measured = 0;
  options_.database = (folder_ / "third.db").string();
  options_.budget_seconds = 10;
  Compile();
  EXPECT_EQ(watcher_.num_first, 1);
}

TEST_F(CheckpointsTest, ProgressHasBoundsBelowItsCosts) {
  Compile();
  const std::vector<ExplainedProgress> steps = ReadExplanation(options_.output).graphs.at(0).progress;
  ASSERT_FALSE(steps.empty());
  EXPECT_TRUE(steps.back().best_seconds.has_value());
  for (const ExplainedProgress& step : steps) {
    if (!step.best_seconds || !step.least_seconds) continue;
    EXPECT_LE(*step.least_seconds, *step.best_seconds);
  }
}

TEST_F(CheckpointsTest, ProgressHasNoCostWhereNoneIsKnown) {
  options_.budget_seconds = 0;
  Compile();
  const std::vector<ExplainedProgress> steps = ReadExplanation(options_.output).graphs.at(0).progress;
  for (const ExplainedProgress& step : steps) {
    EXPECT_EQ(step.measured, 0);
    EXPECT_EQ(step.best_seconds, std::nullopt);  // not the sum of what costs at least are
  }
}

TEST_F(CheckpointsTest, ASmallModelIsCompiledOnce) {
  options_.first_checkpoint_seconds = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Compile().num_checkpoints, 0);
  EXPECT_EQ(watcher_.num_written, 0);
}

TEST_F(CheckpointsTest, ALargeModelIsWrittenFirst) {
  options_.first_checkpoint_seconds = 1e6;
  EXPECT_EQ(Compile().num_checkpoints, 0);
  const std::string large =  // 64 MiB of results
      "def @main(%x: Tensor[(2048, 4096), float32]) { clip(nn.relu(%x), a_min=0.0, a_max=1.5) }";
  EXPECT_GE(CompileModule(ParseModule(large, "large"), "large", options_).num_checkpoints, 1);
}

TEST_F(CheckpointsTest, ASearchThatIsStoppedAtOnceWritesTheNativeToolchainsOwn) {
  options_.should_stop = [] { return true; };
  const CompileReport report = Compile();
  EXPECT_TRUE(report.is_stopped);
  EXPECT_EQ(report.num_measured, 0);
  ASSERT_EQ(report.contenders.size(), 1u);
  EXPECT_EQ(report.contenders[0].name, "native");
  EXPECT_NO_THROW(Executable::Verify(options_.output));
}

TEST_F(CheckpointsTest, ASearchThatIsStoppedComparesWhatIsKnownWithWhatIsWritten) {
  options_.first_checkpoint_seconds = 0;
  options_.should_stop = [&] { return watcher_.num_measured >= 4; };
  const CompileReport report = Compile();
  EXPECT_TRUE(report.is_stopped);
  EXPECT_GE(report.num_checkpoints, 1);
  EXPECT_LE(report.contenders.size(), 2u);
  for (const Contender& one : report.contenders) EXPECT_EQ(one.failure, "") << one.name;
  EXPECT_NO_THROW(Executable::Verify(options_.output));
}

TEST_F(CheckpointsTest, APlayOffThatIsStoppedLeavesWhatIsWritten) {
  options_.first_checkpoint_seconds = 0;
  // The play-off of all, which is behind the first executable.
  options_.should_stop = [&] { return watcher_.num_written > 0 && watcher_.num_measured > 0 && watcher_.is_timing; };
  const CompileReport report = Compile();
  EXPECT_TRUE(report.is_stopped);
  EXPECT_EQ(report.contenders.size(), 1u);
  EXPECT_NO_THROW(Executable::Verify(options_.output));
}

/// A program of two regions.
constexpr const char* kProgram = R"(
def @main(%c: bool, %x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32]) {
  if (%c) { nn.relu(nn.dense(%x, %w)) } else { nn.softmax(nn.dense(tanh(%x), %w)) }
})";

TEST_F(CheckpointsTest, AProgramIsWrittenOnceARegionIs) {
  options_.first_checkpoint_seconds = 0;
  watcher_.is_program = true;
  const CompileReport report = CompileModule(ParseModule(kProgram, "program"), "program", options_);
  EXPECT_GE(watcher_.num_written, 2);  // each region has one at once
  EXPECT_EQ(report.num_checkpoints, watcher_.num_written);
  EXPECT_FALSE(report.is_stopped);
  ASSERT_EQ(report.regions.size(), 2u);
  for (const CompileReport& region : report.regions) EXPECT_GT(region.num_measured + region.num_from_database, 0);
}

TEST_F(CheckpointsTest, AProgramThatIsStoppedTakesWhatItsRegionsHave) {
  options_.first_checkpoint_seconds = 0;
  options_.should_stop = [&] { return watcher_.num_written > 0; };
  watcher_.is_program = true;
  const CompileReport report = CompileModule(ParseModule(kProgram, "program"), "program", options_);
  EXPECT_EQ(report.num_checkpoints, 1);
  EXPECT_TRUE(report.is_stopped);
  ASSERT_EQ(report.regions.size(), 2u);
  EXPECT_EQ(report.regions[1].num_measured, 0);
  EXPECT_EQ(watcher_.num_imports, 1);  // the other one was compiled for the executable that was written
  EXPECT_NO_THROW(vm::Executable::Load(options_.output));
}

TEST_F(CheckpointsTest, NothingIsWrittenEarlyThatMayLackWhatIsRequired) {
  options_.first_checkpoint_seconds = 0;
  options_.require = {"native"};
  EXPECT_EQ(Compile().num_checkpoints, 0);
}

TEST_F(CheckpointsTest, ASearchEndsOnceNoMixCanBeFasterByMoreThanIsAskedFor) {
  options_.until = 1.0;
  const CompileReport early = Compile();
  EXPECT_FALSE(early.budget_spent);
  ASSERT_TRUE(early.certificate);
  EXPECT_LE(early.certificate->gap(), 1.0);
  const int64_t measured = early.num_measured;
  options_.until = 0.0;
  const CompileReport whole = Compile();
  EXPECT_GT(whole.num_measured + whole.num_from_database, measured);
  EXPECT_LE(whole.certificate->gap(), early.certificate->gap() + 1e-9);
}

}  // namespace
}  // namespace collage
