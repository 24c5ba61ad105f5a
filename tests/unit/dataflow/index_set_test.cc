#include "dataflow/index_set.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(IndexSetTest, TextAbbreviatesRuns) {
  EXPECT_EQ(IndexSet(10, {1, 3, 4, 5, 6, 8}).ToString(), "{1,3..6,8}");
  EXPECT_EQ(IndexSet(10, {1, 2}).ToString(), "{1,2}");
  EXPECT_EQ(IndexSet(10).ToString(), "{}");
}

TEST(IndexSetTest, OperationsAcrossWords) {
  const IndexSet a(200, {0, 63, 64, 130});
  const IndexSet b(200, {63, 130, 199});
  EXPECT_EQ((a | b).Members(), (std::vector<int>{0, 63, 64, 130, 199}));
  EXPECT_EQ((a & b).Members(), (std::vector<int>{63, 130}));
  EXPECT_EQ((a - b).Members(), (std::vector<int>{0, 64}));
  EXPECT_FALSE(a.AreDisjoint(b));
  EXPECT_TRUE((a & b).IsSubset(a));
  EXPECT_EQ(b.FirstInside(), 63u);
  EXPECT_EQ(IndexSet(200).FirstInside(), 200u);
  EXPECT_EQ(a.PopCount(), 4u);
}

}  // namespace
}  // namespace collage
