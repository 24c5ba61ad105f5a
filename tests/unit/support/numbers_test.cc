// numbers_test.cc: 16-bit floats against their definition.
#include "support/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace collage {
namespace {

/// The value of a binary16, from its definition.
double ValueOfHalf(uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int mantissa = half & 0x3ff;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool IsFiniteHalf(int half) { return (half & 0x7c00) != 0x7c00; }

TEST(Numbers, EveryHalfHasItsValue) {
  for (int half = 0; half < 0x10000; ++half) {
    const float value = HalfToFloat(static_cast<uint16_t>(half));
    if (IsFiniteHalf(half)) {
      ASSERT_EQ(value, ValueOfHalf(static_cast<uint16_t>(half))) << half;
    } else if ((half & 0x3ff) == 0) {
      ASSERT_EQ(value, (half & 0x8000) != 0 ? -INFINITY : INFINITY) << half;
    } else {
      ASSERT_TRUE(std::isnan(value)) << half;
    }
  }
}

TEST(Numbers, EveryHalfComesBack) {
  for (int half = 0; half < 0x10000; ++half) {
    const uint16_t back = FloatToHalf(HalfToFloat(static_cast<uint16_t>(half)));
    if (IsFiniteHalf(half) || (half & 0x3ff) == 0) {
      ASSERT_EQ(back, half);
    } else {
      ASSERT_EQ(back & 0x7e00, 0x7e00) << half;
    }
  }
}

TEST(Numbers, FloatsRoundToTheNearestHalfAndTiesToEven) {
  // Between each two neighbours: just below the middle, the middle, just above.
  for (uint16_t low = 0; low < 0x7bff; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const auto middle = static_cast<float>((ValueOfHalf(low) + ValueOfHalf(high)) / 2);
    ASSERT_EQ(FloatToHalf(middle), (low & 1) == 0 ? low : high) << low;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), low) << low;
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, INFINITY)), high) << low;
    ASSERT_EQ(FloatToHalf(-middle), 0x8000 | ((low & 1) == 0 ? low : high)) << low;
  }
}

TEST(Numbers, LargeFloatsBecomeInfiniteHalves) {
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65519.996f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-INFINITY), 0xfc00);
  EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(NAN))));
}

TEST(Numbers, BFloat16RoundsToNearestTiesToEven) {
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even below
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, even above
  EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(std::bit_cast<float>(0x7f800001u)))));
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    ASSERT_EQ(FloatToBFloat16(BFloat16ToFloat(static_cast<uint16_t>(bits))), bits);
  }
}

TEST(Numbers, DoublesAreNotRoundedTwice) {
  // Just above the middle of 1 and the next half; rounding to float first would give the middle, and then 1.
  const double value = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(FloatToHalf(static_cast<float>(value)), 0x3c00);
  EXPECT_EQ(FloatToHalf(RoundToOdd(value)), 0x3c01);
  EXPECT_EQ(FloatToHalf(RoundToOdd(-value)), 0xbc01);
  EXPECT_EQ(RoundToOdd(0.1f), 0.1f);
  EXPECT_TRUE(std::isnan(RoundToOdd(NAN)));
  EXPECT_EQ(FloatToHalf(RoundToOdd(1e300)), 0x7c00);
}

}  // namespace
}  // namespace collage
