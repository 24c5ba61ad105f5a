#include "profile/timeline.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "unit/runtime/test_plan.h"

namespace collage {
namespace {

using Time = RecordedRun::Time;

Time At(int milliseconds) { return Time(std::chrono::milliseconds(milliseconds)); }

/// A run of two steps; two threads work in the first.
RecordedRun Sample() {
  RecordedRun run;
  run.begin = At(100);
  run.end = At(110);
  run.events = {{{RunStep::kPlanStep, -1, 0}, At(101), At(105), 0}, {{RunStep::kPlanStep, -1, 1}, At(106), At(109), 2}};
  run.shares = {{0, At(102), At(104)}, {1, At(102), At(103)}};
  return run;
}

class TimelineTest : public testing::Test {
 protected:
  TimelineTest() {
    RegisterAddLoader();
    subject_ = MakeSubject(Executable::FromPlan(ChainPlan(2, 4)), {});
    numbers_.emplace(*subject_);
  }
  std::unique_ptr<RunSubject> subject_;
  std::optional<StepNumbers> numbers_;
};

TEST_F(TimelineTest, HasStepsAndTheThreadsInThem) {
  for (int i = 0; i < 2; ++i) numbers_->Add({RunStep::kPlanStep, -1, i});
  const std::vector<TimelineSpan> spans = TimelineOf(Sample(), *numbers_);
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_FALSE(spans[0].is_region);
  EXPECT_NEAR(spans[0].begin_seconds, 0.001, 1e-9);
  EXPECT_NEAR(spans[0].end_seconds, 0.005, 1e-9);
  EXPECT_TRUE(spans[1].is_region && spans[2].is_region);
  EXPECT_EQ(spans[2].thread, 1);
  EXPECT_EQ(spans[2].step, 0);
  EXPECT_EQ(spans[3].step, 1);
  const std::vector<double> busy = ThreadSeconds(spans, 0);
  ASSERT_EQ(busy.size(), 2u);
  EXPECT_NEAR(busy[0], 0.002, 1e-9);
  EXPECT_NEAR(busy[1], 0.001, 1e-9);
  EXPECT_EQ(ThreadSeconds(spans, 1), std::vector<double>{});
}

TEST_F(TimelineTest, LeavesOutStepsWithoutANumber) {
  numbers_->Add({RunStep::kPlanStep, -1, 1});
  const std::vector<TimelineSpan> spans = TimelineOf(Sample(), *numbers_);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].step, 0) << "the only step with a number";
}

TEST_F(TimelineTest, TheMedianRunIsNeitherTheShortestNorTheLongest) {
  std::vector<RecordedRun> runs(3);
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].begin = At(0);
    runs[i].end = At(std::array{9, 2, 5}[i]);
  }
  EXPECT_EQ(&MedianRun(runs), &runs[2]);
}

}  // namespace
}  // namespace collage
