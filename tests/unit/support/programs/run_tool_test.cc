#include "support/programs/run_tool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(RunToolTest, BothStreamsAreReturnedWithTheStatus) {
  const ToolResult result = RunTool({"sh", "-c", "echo one; echo two >&2; exit 3"});
  EXPECT_EQ(result.output, "one\ntwo\n");
  ASSERT_TRUE(WIFEXITED(result.status));
  EXPECT_EQ(WEXITSTATUS(result.status), 3);
}

TEST(RunToolTest, ManyBytesDoNotBlock) {
  EXPECT_EQ(RunTool({"head", "-c", "300000", "/dev/zero"}).output.size(), 300000u);
}

TEST(RunToolTest, ProgramsThatThereAreNotAreNamed) {
  ExpectError([] { RunTool({"no-such-program"}); }, ErrorCategory::kUnavailable, "cannot run 'no-such-program': ");
}

}  // namespace
}  // namespace collage
