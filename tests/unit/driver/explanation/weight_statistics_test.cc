#include "driver/explanation/weight_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "driver/explanation/describe_graph.h"

namespace collage {
namespace {

template <typename T>
Tensor Row(DataType dtype, const std::vector<T>& values) {
  return Tensor::Of<T>({static_cast<int64_t>(values.size())}, dtype, values);
}

TEST(WeightStatisticsTest, AreThoseOfAllElements) {
  const auto weights = StatisticsOf(Row<float>(kFloat32, {-1, 0, 3, 2}));
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->minimum, -1);
  EXPECT_EQ(weights->maximum, 3);
  EXPECT_DOUBLE_EQ(weights->mean, 1);
  EXPECT_DOUBLE_EQ(weights->deviation, std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(weights->zeros, 0.25);
}

TEST(WeightStatisticsTest, KeepDigitsFarFromZero) {
  const auto weights = StatisticsOf(Row<double>(DataType::Float(64), {1e9, 1e9 + 1, 1e9 + 2}));
  ASSERT_TRUE(weights);
  EXPECT_DOUBLE_EQ(weights->mean, 1e9 + 1);
  EXPECT_NEAR(weights->deviation, std::sqrt(2.0 / 3), 1e-9);
}

TEST(WeightStatisticsTest, ReadIntegers) {
  const auto weights = StatisticsOf(Row<int8_t>(DataType::Int(8), {-128, 127, 0, 0}));
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->minimum, -128);
  EXPECT_EQ(weights->zeros, 0.5);
}

TEST(WeightStatisticsTest, AreNotKnownOfOddElements) {
  EXPECT_FALSE(StatisticsOf(Tensor::Empty({0, 3}, kFloat32)));
  EXPECT_FALSE(StatisticsOf(Row<float>(kFloat32, {std::numeric_limits<float>::infinity()})));
  EXPECT_FALSE(StatisticsOf(Row<float>(kFloat32, {0, std::nanf("")})));
  EXPECT_FALSE(StatisticsOf(Tensor::Empty({4}, DataType::Int(4))));
}

TEST(RoundedTest, KeepsNumbersOfAnySize) {
  EXPECT_EQ(Rounded(1234567.8), 1234568);
  EXPECT_EQ(Rounded(0.00012345678), 0.000123457);
  EXPECT_EQ(Rounded(5e-324), 5e-324);
  EXPECT_EQ(Rounded(-1.5e308), -1.5e308);
  EXPECT_EQ(Rounded(0), 0);
}

}  // namespace
}  // namespace collage
