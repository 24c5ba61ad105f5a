// child_process_test.cc: an answer comes back, and whatever else a child does is a reason.
#include "collage/target/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace collage {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{60'000};

TEST(AnswerInChild, GivesTheAnswer) {
  const pid_t here = getpid();
  const Result<std::string> answer = AnswerInChild([&] { return getpid() == here ? "here" : "elsewhere"; }, kLong);
  ASSERT_TRUE(answer.ok()) << answer.reason().text;
  EXPECT_EQ(*answer, "elsewhere");
  EXPECT_EQ(*AnswerInChild([] { return std::string(); }, kLong), "");
}

TEST(AnswerInChild, GivesAnswersLargerThanAPipe) {
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(*AnswerInChild([&] { return large; }, kLong), large);
}

TEST(AnswerInChild, LeavesWhatTheChildChangesToTheChild) {
  int number = 1;
  EXPECT_EQ(*AnswerInChild([&] { return std::to_string(++number); }, kLong), "2");
  EXPECT_EQ(number, 1);
}

TEST(AnswerInChild, TellsWhyThereIsNone) {
  const auto reason = [](const std::function<std::string()>& answer, milliseconds limit = kLong) {
    return AnswerInChild(answer, limit).reason().text;
  };
  EXPECT_EQ(reason([]() -> std::string { throw std::runtime_error("no library"); }), "no library");
  EXPECT_EQ(reason([]() -> std::string {
              raise(SIGKILL);
              return "";
            }),
            "ended by signal 9 (Killed)");
  EXPECT_EQ(reason([]() -> std::string { _exit(3); }), "ended without an answer");
  EXPECT_EQ(reason(
                []() -> std::string {
                  for (;;) pause();
                },
                milliseconds(50)),
            "took longer than 50 ms");
}

}  // namespace
}  // namespace collage
