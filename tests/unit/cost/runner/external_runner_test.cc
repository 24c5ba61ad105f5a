#include "cost/runner/external_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collage/support/error.h"
#include "test_paths.h"

namespace collage {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

HelperProgram Helper(const std::string& behaviour) {
  HelperProgram program;
  program.name = "fake";
  program.command = {kTestPython, std::string(kTestData) + "/unit/cost/runner/fake_helper.py", behaviour};
  return program;
}

std::vector<MeasureRequest> Requests(int count) {
  std::vector<MeasureRequest> requests;
  for (int i = 0; i < count; ++i) requests.push_back({{}, FindRate{std::to_string(i)}});
  return requests;
}

bool Ignore(size_t, const TuningRecord&) { return true; }

/// How a run of one request fails.
Error FailureOf(HelperProgram program) {
  try {
    MakeExternalRunner(std::move(program))->Run(Requests(1), Ignore);
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
    return error;
  }
  return {ErrorCategory::kInternal, "did not fail"};
}

TEST(ExternalRunnerTest, AnswersComeInAnyOrder) {
  const auto runner = MakeExternalRunner(Helper("backwards"));
  EXPECT_TRUE(runner->needs_whole_partitions());
  EXPECT_EQ(runner->num_at_once(), 1);  // it has not been asked yet
  for (int run = 0; run < 2; ++run) {
    std::vector<size_t> order;
    runner->Run(Requests(6), [&](size_t index, const TuningRecord& record) {
      order.push_back(index);
      EXPECT_EQ(record.reason, std::to_string(index));
      EXPECT_EQ(record.p50, 2.0);
      return true;
    });
    EXPECT_THAT(order, testing::ElementsAre(2, 1, 0, 5, 4, 3));
    EXPECT_EQ(runner->num_at_once(), 3);
  }
}

TEST(ExternalRunnerTest, AHelperThatDiesIsAnErrorWithItsLastWords) {
  size_t answers = 0;
  try {
    MakeExternalRunner(Helper("dies"))->Run(Requests(3), [&](size_t, const TuningRecord&) {
      ++answers;
      return true;
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
    EXPECT_THAT(error.message(), HasSubstr("exit code 3"));
    EXPECT_THAT(error.message(), HasSubstr("the last thing it said"));
  }
  EXPECT_EQ(answers, 1u);
  EXPECT_THAT(FailureOf(Helper("killed")).message(), HasSubstr("signal 9"));
}

TEST(ExternalRunnerTest, NonsenseIsAnError) {
  EXPECT_THAT(FailureOf(Helper("garbage")).message(), HasSubstr("wrote 'Traceback (most recent call last):'"));
  EXPECT_THAT(FailureOf(Helper("malformed")).message(), HasSubstr("no record of a measurement"));
}

TEST(ExternalRunnerTest, SilenceIsAnError) {
  HelperProgram silent = Helper("silent");
  silent.patience = milliseconds(300);
  EXPECT_THAT(FailureOf(silent).message(), HasSubstr("has said nothing for 0.3 s"));
  HelperProgram never_ready = Helper("never_ready");
  never_ready.start_patience = milliseconds(300);
  EXPECT_THAT(FailureOf(never_ready).message(), HasSubstr("has said nothing for 0.3 s"));
}

TEST(ExternalRunnerTest, HelpersSayWhatIsWrong) {
  EXPECT_THAT(FailureOf(Helper("unfit")).message(), HasSubstr("it is of another kind"));
  const Error refused = FailureOf(Helper("refuses"));
  EXPECT_EQ(refused.message(), "runner 'fake' has nowhere to measure");
  EXPECT_EQ(refused.hint(), "start something");
  EXPECT_EQ(FailureOf(Helper("cannot")).message(), "runner 'fake' lost it on the way");
  HelperProgram missing;
  missing.command = {"/nowhere/helper"};
  EXPECT_THAT(FailureOf(missing).message(), HasSubstr("cannot start '/nowhere/helper'"));
}

TEST(ExternalRunnerTest, WarningsArePassedOn) {
  std::vector<std::string> warnings;
  HelperProgram program = Helper("warns");
  program.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  MakeExternalRunner(std::move(program))->Run(Requests(2), Ignore);
  EXPECT_THAT(warnings, testing::ElementsAre("one is missing"));
}

TEST(ExternalRunnerTest, WhatIsNoLongerWantedIsCancelled) {
  const auto runner = MakeExternalRunner(Helper("cancels"));
  int answers = 0;
  runner->Run(Requests(4), [&](size_t, const TuningRecord&) {
    ++answers;
    return false;
  });
  EXPECT_EQ(answers, 1);
  // The late answer to what was cancelled is no answer to anything.
  std::string text;
  runner->Run(Requests(1), [&](size_t, const TuningRecord& record) {
    text = record.reason;
    return true;
  });
  EXPECT_EQ(text, "cancelled 2 3 4");
}

TEST(ExternalRunnerTest, RequestsMayBeLong) {
  const auto runner = MakeExternalRunner(Helper("backwards"));
  constexpr size_t kBytes = 20'000'000;
  std::vector<MeasureRequest> requests = Requests(3);
  requests[1].task = FindRate{std::string(kBytes, 'x')};
  int answers = 0;
  runner->Run(requests, [&](size_t, const TuningRecord&) {
    ++answers;
    return true;
  });
  EXPECT_EQ(answers, 3);
}

}  // namespace
}  // namespace collage
