// processors_test.cc: control groups' quotas.
#include "runtime/threads/processors.h"

#include <gtest/gtest.h>

#include "support/file.h"

namespace collage {
namespace {

TEST(Processors, QuotaIsRoundedAndAtLeastOne) {
  EXPECT_EQ(QuotaProcessors("200000 100000\n"), 2);
  EXPECT_EQ(QuotaProcessors("350000 100000"), 4);
  EXPECT_EQ(QuotaProcessors("20000 100000"), 1);
  EXPECT_EQ(QuotaProcessors("1 100000"), 1);
}

TEST(Processors, NoQuotaIsNoLimit) {
  for (const char* text : {"max 100000\n", "", "garbage", "100000", "100000 0", "-5 100000"}) {
    EXPECT_EQ(QuotaProcessors(text), kUnlimitedProcessors) << text;
  }
}

TEST(Processors, TheTightestGroupAroundCounts) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root / "a/b/c");
  EXPECT_EQ(CgroupProcessors(root.path(), "/a/b/c"), kUnlimitedProcessors);
  WriteFile(root / "a/cpu.max", "300000 100000");
  WriteFile(root / "a/b/cpu.max", "max 100000");
  WriteFile(root / "a/b/c/cpu.max", "500000 100000");
  EXPECT_EQ(CgroupProcessors(root.path(), "/a/b/c"), 3);
  EXPECT_EQ(CgroupProcessors(root.path(), "/"), kUnlimitedProcessors);
  EXPECT_EQ(CgroupProcessors(root.path(), "/elsewhere"), kUnlimitedProcessors);
  WriteFile(root / "cpu.max", "100000 100000");
  EXPECT_EQ(CgroupProcessors(root.path(), "/"), 1);
}

}  // namespace
}  // namespace collage
