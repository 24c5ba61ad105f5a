// edit_distance_test.cc: near misses for mistyped names.
#include "support/edit_distance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacements) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("Softmax", "softmax"), 0);
}

TEST(EditDistance, NearMissesAreRankedAndFew) {
  const std::vector<std::string> names{"nn.conv2d", "nn.conv1d", "nn.conv3d", "nn.conv2d_transpose", "add", "nn.relu"};
  EXPECT_THAT(NearMisses("nn.conv2", names), testing::ElementsAre("nn.conv2d", "nn.conv1d", "nn.conv3d"));
  EXPECT_THAT(NearMisses("nn.rleu", names), testing::ElementsAre("nn.relu"));
  EXPECT_THAT(NearMisses("something_else", names), testing::IsEmpty());
}

}  // namespace
}  // namespace collage
