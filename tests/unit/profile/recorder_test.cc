#include "profile/recorder.h"

#include <gtest/gtest.h>

#include "unit/runtime/test_plan.h"

namespace collage {
namespace {

TEST(RecorderTest, NotesStepsInsideOfTheRun) {
  RegisterAddLoader();
  const std::unique_ptr<RunSubject> subject = MakeSubject(Executable::FromPlan(ChainPlan(3, 4)), {});
  Recorder recorder;
  recorder.Record(*subject);
  recorder.Record(*subject);
  const RecordedRun run = recorder.Take();
  ASSERT_EQ(run.events.size(), 3u) << "those of the last run";
  RecordedRun::Time before = run.begin;
  for (int i = 0; i < 3; ++i) {
    const RecordedRun::Event& event = run.events[static_cast<size_t>(i)];
    EXPECT_EQ(event.step, (RunStep{RunStep::kPlanStep, -1, i}));
    EXPECT_LE(before, event.begin);
    EXPECT_LE(event.begin, event.end);
    before = event.end;
  }
  EXPECT_LE(before, run.end);
  EXPECT_EQ(recorder.Take().events.size(), 0u);
}

TEST(CountRecorderTest, NotesCountsOfEachStep) {
  RegisterAddLoader();
  const std::unique_ptr<RunSubject> subject = MakeSubject(Executable::FromPlan(ChainPlan(2, 4)), {});
  const Counters counters;
  CountRecorder recorder(counters);
  subject->Run(recorder);
  ASSERT_EQ(recorder.events().size(), 2u);
  EXPECT_EQ(recorder.events()[1].step.index, 1);
  EXPECT_EQ(recorder.events()[1].counts.size(), counters.rows().size());
  for (const double count : recorder.events()[1].counts) EXPECT_GE(count, 0);
  recorder.Clear();
  EXPECT_EQ(recorder.events().size(), 0u);
}

}  // namespace
}  // namespace collage
