#include "viewers/dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/viewers/two_partitions.h"

namespace collage {
namespace {

TEST_F(ViewersTest, DotHasPartitionsAndTheTensorsBetweenThem) {
  const std::string dot = DotOf(*viewed_);
  EXPECT_THAT(dot, testing::HasSubstr("digraph executable {"));
  EXPECT_THAT(dot, testing::HasSubstr(R"(label="0: test\n4.00 us, 80 %\nadd")"));
  EXPECT_THAT(dot, testing::HasSubstr(R"x(step_0_0 -> step_0_1 [label="float32 (8)"];)x"));
  EXPECT_THAT(dot, testing::HasSubstr(R"(step_0_1 -> output_0_0)"));
}

}  // namespace
}  // namespace collage
