#include "partition/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace collage {
namespace {

TEST(CostTest, TextAndSeconds) {
  EXPECT_EQ(Cost::Zero().ToString(), "0");
  EXPECT_EQ(Cost::Value(1.25e-5).ToString(), "12.5us");
  EXPECT_EQ(Cost::Invalid().ToString(), "invalid");
  EXPECT_EQ(Cost::Unknown().ToString(), "unknown");
  EXPECT_EQ((Cost::Unknown() + Cost::Value(2e-6)).ToString(), "2us+unknown");
  EXPECT_EQ(Cost::Value(3).ToDouble(), 3);
  EXPECT_TRUE(std::isinf(Cost::Invalid().ToDouble()));
  EXPECT_TRUE(std::isnan(Cost::Unknown().ToDouble()));
  for (const Cost& cost : {Cost::Zero(), Cost::Value(2), Cost::Unknown(), Cost::Invalid()}) {
    EXPECT_EQ(Cost::FromDouble(cost.ToDouble()), cost);
  }
}

TEST(CostTest, Sums) {
  EXPECT_EQ(Cost::Value(1) + Cost::Value(2), Cost::Value(3));
  EXPECT_TRUE((Cost::Value(1) + Cost::Invalid()).is_invalid());
  EXPECT_EQ(Cost::Unknown() + Cost::Invalid(), Cost::Invalid()) << "cannot be run, whatever the rest costs";
  EXPECT_TRUE((Cost::Unknown() + Cost::Value(1)).is_unknown());
  EXPECT_EQ((Cost::Unknown() + Cost::Value(1)).known_seconds(), 1);
  const double most = std::numeric_limits<double>::max();
  EXPECT_TRUE((Cost::Value(most) + Cost::Value(most)).is_invalid()) << "too much to be run";
}

TEST(CostTest, Factors) {
  EXPECT_EQ(Cost::Value(2) * 0.5, Cost::Value(1));
  EXPECT_EQ(Cost::Invalid() * 0, Cost::Invalid());
  EXPECT_EQ((Cost::Unknown() + Cost::Value(2)) * 2, Cost::Unknown() + Cost::Value(4));
}

TEST(CostTest, OrderIsTotalAndSumsKeepIt) {
  const std::vector<Cost> ascending{Cost::Zero(),
                                    Cost::Value(1e-9),
                                    Cost::Value(1),
                                    Cost::Value(1e30),
                                    Cost::Unknown(),
                                    Cost::Unknown() + Cost::Value(1),
                                    Cost::Unknown() + Cost::Unknown(),
                                    Cost::Invalid()};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      EXPECT_EQ(ascending[i] <=> ascending[j], i <=> j) << i << " and " << j;
      EXPECT_EQ(ascending[i] == ascending[j], i == j);
      for (const Cost& more : ascending) {
        EXPECT_EQ(std::max(ascending[i] + more, ascending[j] + more), ascending[std::max(i, j)] + more);
      }
    }
  }
  std::vector<Cost> shuffled{ascending[5], ascending[7], ascending[0], ascending[4], ascending[6],
                             ascending[1], ascending[3], ascending[2], ascending[4]};
  EXPECT_EQ(std::set<Cost>(shuffled.begin(), shuffled.end()).size(), ascending.size());
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled.front(), Cost::Zero());
  EXPECT_EQ(shuffled.back(), Cost::Invalid());
}

TEST(CostDeathTest, ValuesAreFiniteAndNotNegative) {
  EXPECT_ANY_THROW(Cost::Value(-1));
  EXPECT_ANY_THROW(Cost::Value(std::nan("")));
}

}  // namespace
}  // namespace collage
