#include "profile/step_sums.h"

#include <gtest/gtest.h>

#include "unit/runtime/test_plan.h"

namespace collage {
namespace {

TEST(StepSumsTest, CallsOfAStepAreAddedUp) {
  RegisterAddLoader();
  const std::unique_ptr<RunSubject> subject = MakeSubject(Executable::FromPlan(ChainPlan(2, 4)), {});
  StepNumbers numbers(*subject);
  const RunStep first{RunStep::kPlanStep, -1, 0}, second{RunStep::kPlanStep, -1, 1};
  EXPECT_EQ(numbers.Add(second), 0) << "in the order in which they come";
  EXPECT_EQ(numbers.Add(second), 0);
  EXPECT_FALSE(numbers.Find(first));
  EXPECT_EQ(numbers.profiles().at(0).plan_step, 1);
  const auto at = [](int milliseconds) { return RecordedRun::Time(std::chrono::milliseconds(milliseconds)); };
  RecordedRun run;
  run.events = {{second, at(0), at(2), 0}, {first, at(2), at(3), 0}, {second, at(3), at(7), 0}};
  const std::map<int, double> seconds = SecondsBySteps(run, numbers);
  ASSERT_EQ(seconds.size(), 1u) << "the first step has no number";
  EXPECT_NEAR(seconds.at(0), 0.006, 1e-9);
}

TEST(StepSumsTest, WorkOfAllCallsUnlessOneIsUnknown) {
  RegisterAddLoader();
  ExecutionPlan plan = ChainPlan(2, 4);
  plan.kernels[0].work = ExecutionPlan::KernelWork{8, 4, 1, 16, {}};
  const std::unique_ptr<RunSubject> subject = MakeSubject(Executable::FromPlan(plan), {});
  StepNumbers numbers(*subject);
  const std::map<int, std::optional<Work>> work = WorkBySteps(*subject, numbers);
  ASSERT_EQ(work.size(), 2u);
  ASSERT_TRUE(work.at(0));
  EXPECT_EQ(work.at(0)->products, 8);
  EXPECT_EQ(work.at(0)->multiply_adds, 4);
  EXPECT_EQ(work.at(0)->boundary_bytes, 2 * 4 * 4);
  EXPECT_FALSE(work.at(1)) << "its plan does not state it";
  EXPECT_EQ(numbers.profiles().at(0).calls, 1);
}

}  // namespace
}  // namespace collage
