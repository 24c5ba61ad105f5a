// rounding_test.cc: numbers that are rounded many at a time are rounded as one after the other.
#include "ir/eval/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "ir/eval/uniform_run.h"
#include "runtime/split_mix.h"

namespace collage {
namespace {

constexpr int64_t kCounts[] = {0, 1, 63, 64, 65, 200, 1000};

std::vector<double> Values(int64_t count) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0.5, 1.5, -0.5, -2.5, 3.0, -0.0, 1e300, kInfinity, -kInfinity, std::nan("")};
  SplitMix generator(7);
  while (static_cast<int64_t>(values.size()) < count) values.push_back(200 * generator.Uniform() - 100);
  values.resize(static_cast<size_t>(count));
  return values;
}

void ExpectTheSame(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << "element " << i;
    } else {
      EXPECT_EQ(actual[i], expected[i]) << "element " << i;
    }
  }
}

TEST(RoundingTest, ManyNumbersAreRoundedAsOneAfterTheOther) {
  for (const bool at_random : {false, true}) {
    for (const int64_t count : kCounts) {
      Rounder one = at_random ? Rounder::AtRandom(3) : Rounder(), many = one;
      std::vector<double> expected = Values(count), actual = expected;
      for (double& value : expected) value = one(value);
      many.Round(actual.data(), count);
      ExpectTheSame(actual, expected);
      EXPECT_EQ(many(0.25), one(0.25)) << "the generator is elsewhere after " << count;
    }
  }
}

TEST(RoundingTest, UniformNumbersAreThoseOfTheGenerator) {
  for (const int64_t count : kCounts) {
    SplitMix one(11), many(11);
    std::vector<double> expected(static_cast<size_t>(count)), actual = expected;
    for (double& value : expected) value = one.Uniform();
    FillUniform(many, actual.data(), count);
    ExpectTheSame(actual, expected);
    EXPECT_EQ(many.Next(), one.Next());
  }
}

}  // namespace
}  // namespace collage
