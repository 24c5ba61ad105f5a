#include "collage/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "collage/ir/text.h"
#include "collage/runtime/thread_pool.h"
#include "profile/profile_subject.h"
#include "unit/runtime/test_plan.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

constexpr ProfileOptions kQuick{.seconds = 0.05, .counts = true, .evicts = false, .finds_roof = false};

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() { RegisterAddLoader(); }
};

TEST_F(ProfileTest, StepsOfAPlanAreTimedInsideOfRuns) {
  const Profile profile = ProfileExecutable(Executable::FromPlan(ChainPlan(3, 1 << 16)), {}, kQuick);
  ASSERT_EQ(profile.steps.size(), 3u);
  double shares = 0, seconds = 0;
  for (size_t i = 0; i < 3; ++i) {
    const StepProfile& step = profile.steps[i];
    EXPECT_EQ(step.kind, "kernel");
    EXPECT_EQ(step.plan_step, static_cast<int64_t>(i));
    EXPECT_EQ(step.partition, static_cast<int64_t>(i));
    EXPECT_EQ(step.toolchain, "test");
    EXPECT_EQ(step.nodes, std::vector<std::string>{"node \"" + std::to_string(i) + "\""});
    EXPECT_EQ(step.calls, 1);
    EXPECT_GT(step.seconds.p50, 0);
    EXPECT_LE(step.seconds.p10, step.seconds.p50);
    EXPECT_LE(step.seconds.p50, step.seconds.p90);
    EXPECT_GT(step.first_seconds.value_or(0), 0);
    EXPECT_FALSE(step.cold_seconds) << "nobody evicted anything";
    EXPECT_EQ(step.estimated_seconds, 1e-6);
    EXPECT_FALSE(step.bytes) << "the plan does not state its work";
    EXPECT_TRUE(step.counters.contains("page_faults"));
    shares += step.share;
    seconds += step.seconds.p50;
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_GT(profile.runs, 5);
  EXPECT_GT(profile.first_run_seconds, 0);
  EXPECT_LT(seconds, 2 * profile.timed.p50) << "steps are parts of the run";
  EXPECT_GE(profile.between_steps, 0);
  EXPECT_EQ(profile.counters.size(), 7u);
  EXPECT_EQ(profile.memory.weight_bytes, 3 * 4);
  EXPECT_EQ(profile.memory.code_bytes, 3 * 8);
  EXPECT_GT(profile.memory.peak_bytes.value_or(0), 0);
  ASSERT_EQ(profile.arenas.size(), 1u);
}

TEST_F(ProfileTest, TheTimelineIsARunThatStepsFollowEachOtherIn) {
  const Profile profile = ProfileExecutable(Executable::FromPlan(ChainPlan(5, 64)), {}, kQuick);
  ASSERT_EQ(profile.timeline.size(), 5u);
  double end = 0;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(profile.timeline[i].step, static_cast<int>(i));
    EXPECT_GE(profile.timeline[i].begin_seconds, end);
    EXPECT_GE(profile.timeline[i].end_seconds, profile.timeline[i].begin_seconds);
    end = profile.timeline[i].end_seconds;
  }
}

TEST_F(ProfileTest, WorkOfAPlanGivesRatesAndABound) {
  ExecutionPlan plan = ChainPlan(1, 1024);
  plan.kernels[0].work = ExecutionPlan::KernelWork{5e6, 5e6, 0, 100, {}};
  ProfileOptions options = kQuick;
  options.evicts = true;
  options.finds_roof = true;
  const Profile profile = ProfileExecutable(Executable::FromPlan(plan), {}, options);
  const StepProfile& step = profile.steps.at(0);
  EXPECT_EQ(step.products, 5e6);
  EXPECT_EQ(step.bytes, 100 + 2 * 4096);
  EXPECT_EQ(step.weight_bytes, 100);
  EXPECT_GT(step.roof_seconds.value_or(0), 0);
  EXPECT_EQ(step.bound, "arithmetic");
  EXPECT_GT(step.cold_seconds.value_or(0), 0);
  ASSERT_TRUE(profile.roof);
  EXPECT_GT(profile.roof->near_bytes_per_second, profile.roof->memory_bytes_per_second);
}

TEST_F(ProfileTest, ThreadsOfThePoolAreSeen) {
  struct Sharing : Kernel {
    void Bind(std::span<void* const>, std::span<void* const>, void*) override {}
    void Run() override {
      std::atomic<int64_t> sum = 0;
      ParallelFor(
          1 << 16,
          [](void* to, int64_t begin, int64_t end) {
            int64_t own = 0;
            for (int64_t i = begin; i < end; ++i) own += i % 7;
            *static_cast<std::atomic<int64_t>*>(to) += own;
          },
          &sum);
    }
  };
  struct Loader : KernelLoader {
    std::unique_ptr<Kernel> Load(const KernelImage&) override { return std::make_unique<Sharing>(); }
  };
  AddKernelLoader("test_sharing", std::make_unique<Loader>());
  ExecutionPlan plan = ChainPlan(2, 16);
  plan.num_threads = 2;
  plan.kernels[0].loader = "test_sharing";
  const Profile profile = ProfileExecutable(Executable::FromPlan(plan), {}, kQuick);
  ASSERT_EQ(profile.steps[0].thread_seconds.size(), 2u);
  EXPECT_GT(profile.steps[0].thread_seconds[1], 0);
  EXPECT_EQ(profile.steps[1].thread_seconds.size(), 0u) << "it had one thread";
  std::set<int> threads;
  for (const TimelineSpan& span : profile.timeline) threads.insert(span.thread);
  EXPECT_EQ(threads, (std::set<int>{0, 1}));
}

TEST_F(ProfileTest, InputsThatDoNotFitAreRefused) {
  const Executable executable = Executable::FromPlan(ChainPlan(2, 4));
  ExpectError(
      [&] {
        ProfileExecutable(executable, {.tensors = {{"z", Tensor::Zeros({4}, kFloat32)}}}, kQuick);
      },
      ErrorCategory::kInput, "the model has no input 'z'");
  ExpectError(
      [&] {
        ProfileExecutable(executable, {.tensors = {{"x", Tensor::Zeros({5}, kFloat32)}}}, kQuick);
      },
      ErrorCategory::kInput, "input 'x' wants float32 (4), got float32 (5)");
}

TEST_F(ProfileTest, ProgramsHaveStepsThatLoopsRepeat) {
  // Three turns, each with a comparison, an addition and a subtraction that are evaluated.
  const vm::Executable program =
      vm::Compile(ParseModule("def @main(%x: Tensor[(?), float32], %n: int32) -> Tensor[(?), float32] {"
                              "  if (%n == 0) { %x } else { @main(exp(%x), %n - 1) } }",
                              "loop.relay"));
  const Tensor turns = Tensor::Zeros({}, kInt32);
  turns.Set(0, 3);
  const Profile profile = ProfileProgram(program, {.tensors = {{"n", turns}}, .shapes = {{"x", {8}}}}, kQuick);
  const auto found = std::ranges::find(profile.steps, "exp", &StepProfile::operators);
  ASSERT_NE(found, profile.steps.end());
  EXPECT_EQ(found->kind, "evaluation");
  EXPECT_EQ(found->toolchain, "reference");
  EXPECT_EQ(found->calls, 3);
  ExpectError(
      [&] {
        ProfileProgram(program, {.tensors = {{"n", turns}}}, kQuick);
      },
      ErrorCategory::kInput, "input 'x' is of dynamic shape, Tensor[(?), float32]");
}

TEST_F(ProfileTest, AProgramOfOneStraightLineHasAnArena) {
  const vm::Executable program =
      vm::Compile(ParseModule("def @main(%x: Tensor[(?, 4), float32]) { add(exp(%x), tanh(exp(%x))) }", "line.relay"));
  const Profile profile = ProfileProgram(program, {.shapes = {{"x", {8, 4}}}}, kQuick);
  EXPECT_EQ(profile.steps.size(), 4u) << "operators that are evaluated";
  EXPECT_EQ(profile.arenas.size(), 0u) << "which make their own results";
}

TEST_F(ProfileTest, AFileIsLoadedAndThatIsTimed) {
  ExpectError([] { ProfileFile("/no/such.clg", {}, kQuick); }, ErrorCategory::kInput, "such.clg");
}

}  // namespace
}  // namespace collage
