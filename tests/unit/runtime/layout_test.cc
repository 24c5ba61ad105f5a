// layout_test.cc: conversions against the definition, element by element.
#include "collage/runtime/layout.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "collage/runtime/thread_pool.h"
#include "runtime/narrow_runs.h"
#include "support/numbers.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

std::vector<char> RandomBytes(size_t count) {
  std::mt19937 random(7);
  std::vector<char> bytes(count);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// plain [N, C, pixels] → channels-last [N, pixels, C] by the definition.
std::vector<char> ToChannelsLast(const std::vector<char>& plain, const Shape& shape, size_t element_bytes) {
  std::vector<char> result(plain.size());
  const int64_t channels = shape[1];
  int64_t pixels = 1;
  for (size_t i = 2; i < shape.size(); ++i) pixels *= shape[i];
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        std::memcpy(&result[static_cast<size_t>((n * pixels + p) * channels + c) * element_bytes],
                    &plain[static_cast<size_t>((n * channels + c) * pixels + p) * element_bytes], element_bytes);
      }
    }
  }
  return result;
}

/// Converts both ways between guard bytes, which must stay as they are.
void CheckBothWays(const Shape& shape, size_t element_bytes) {
  SCOPED_TRACE(ToString(shape) + " of " + std::to_string(element_bytes) + " bytes");
  const size_t bytes = static_cast<size_t>(NumElements(shape)) * element_bytes;
  constexpr size_t kGuard = 64;
  const std::vector<char> plain = RandomBytes(bytes);
  const std::vector<char> last = ToChannelsLast(plain, shape, element_bytes);
  std::vector<char> target(bytes + 2 * kGuard, '#');
  ConvertLayout(plain.data(), Layout::kPlain, &target[kGuard], Layout::kChannelsLast, shape, element_bytes);
  ASSERT_EQ(std::vector<char>(target.begin() + kGuard, target.end() - kGuard), last);
  ConvertLayout(last.data(), Layout::kChannelsLast, &target[kGuard], Layout::kPlain, shape, element_bytes);
  ASSERT_EQ(std::vector<char>(target.begin() + kGuard, target.end() - kGuard), plain);
  for (size_t i = 0; i < kGuard; ++i) {
    ASSERT_EQ(target[i], '#') << "wrote before the tensor";
    ASSERT_EQ(target[target.size() - 1 - i], '#') << "wrote behind the tensor";
  }
}

TEST(Layout, ConversionsFollowTheDefinition) {
  SetNumThreads(1);
  for (size_t element_bytes : {1, 2, 4, 8}) {
    for (int64_t channels : {1, 2, 3, 5, 7, 8, 9, 16, 17, 24, 33}) {
      for (int64_t width : {1, 2, 3, 7, 8, 11, 16, 23}) CheckBothWays({2, channels, 3, width}, element_bytes);
    }
  }
}

TEST(Layout, OneTwoAndThreeSpatialDimensions) {
  CheckBothWays({2, 5, 19}, 4);
  CheckBothWays({1, 6, 4, 5}, 4);
  CheckBothWays({2, 3, 4, 5, 6}, 4);
  CheckBothWays({2, 0, 4, 5}, 4);
  CheckBothWays({0, 3, 4, 5}, 4);
  CheckBothWays({1, 3, 0, 5}, 4);
}

TEST(Layout, LargeTensorsInParallel) {
  SetNumThreads(3);
  for (size_t element_bytes : {1, 2, 4, 8}) {
    CheckBothWays({1, 64, 81, 83}, element_bytes);
    CheckBothWays({5, 3, 150, 149}, element_bytes);
    CheckBothWays({3, 520, 7, 7}, element_bytes);
  }
  SetNumThreads(1);
}

TEST(Layout, EqualLayoutsAreACopy) {
  const std::vector<char> bytes = RandomBytes(24);
  std::vector<char> target(24);
  ConvertLayout(bytes.data(), Layout::kPlain, target.data(), Layout::kPlain, Shape{2, 3}, 4);
  EXPECT_EQ(target, bytes);
}

/// float32 values that lie in `layout`, as bytes.
std::vector<char> Kept(const std::vector<float>& plain, const Shape& shape, Layout layout) {
  std::vector<char> bytes(plain.size() * sizeof(float));
  std::memcpy(bytes.data(), plain.data(), bytes.size());
  if (const std::optional<DataType> narrow = NarrowType(layout)) {
    std::vector<uint16_t> halves;
    for (float value : plain) halves.push_back(*narrow == kBFloat16 ? FloatToBFloat16(value) : FloatToHalf(value));
    bytes.resize(halves.size() * sizeof(uint16_t));
    std::memcpy(bytes.data(), halves.data(), bytes.size());
  }
  if (!IsChannelsLast(layout)) return bytes;
  return ToChannelsLast(bytes, shape, StoredType(layout, kFloat32).size_bytes());
}

/// `values` after they were kept in `layout`.
std::vector<float> RoundedAs(std::vector<float> values, Layout layout) {
  const std::optional<DataType> narrow = NarrowType(layout);
  for (float& value : values) {
    if (narrow == kBFloat16) value = BFloat16ToFloat(FloatToBFloat16(value));
    if (narrow == kFloat16) value = HalfToFloat(FloatToHalf(value));
  }
  return values;
}

TEST(Layout, ValuesAreKeptAsNarrowerTypes) {
  for (int threads : {1, 3}) {
    SetNumThreads(threads);
    for (const Shape& shape :
         {Shape{2, 3, 5, 7}, {1, 33, 17}, {1, 1, 6, 9}, {3, 70, 1, 1}, {1, 64, 81, 83}, {2, 0, 3}}) {
      std::mt19937 random(5);
      std::vector<float> values(static_cast<size_t>(NumElements(shape)));
      for (float& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      // Every second one is of a size that float16 has.
      for (size_t i = 0; i < values.size(); i += 2) values[i] = std::ldexp(values[i], 20 - std::ilogb(values[i]));
      for (size_t i = 0; i < values.size(); i += 2) values[i] = std::ldexp(values[i], -static_cast<int>(i % 48));
      for (const Layout from : AllLayouts()) {
        for (const Layout to : AllLayouts()) {
          SCOPED_TRACE(ToString(shape) + " from " + std::string(ToString(from)) + " to " + std::string(ToString(to)));
          const std::vector<char> source = Kept(values, shape, from);
          const std::vector<char> expected = Kept(RoundedAs(values, from), shape, to);
          constexpr size_t kGuard = 64;
          std::vector<char> target(expected.size() + kGuard, '#');
          ConvertLayout(source.data(), from, target.data(), to, shape, sizeof(float));
          ASSERT_EQ(std::vector<char>(target.begin(), target.end() - kGuard), expected);
          ASSERT_EQ(std::vector<char>(target.end() - kGuard, target.end()), std::vector<char>(kGuard, '#'));
        }
      }
    }
  }
  SetNumThreads(1);
}

TEST(Layout, RunsOfFloat16AreRoundedAsSingleElements) {
  std::vector<uint16_t> halves(1U << 16U);
  std::vector<uint16_t> again(halves.size());
  std::vector<float> wide(halves.size());
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  WidenFromFloat16(halves.data(), wide.data(), static_cast<int64_t>(halves.size()));
  for (size_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(HalfToFloat(halves[i]))) << i;
  }
  // Each, and its neighbours on both sides of the tie with the next.
  for (const int step : {0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF}) {
    std::vector<float> near = wide;
    for (float& value : near)
      value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) + static_cast<uint32_t>(step));
    RoundToFloat16(near.data(), again.data(), static_cast<int64_t>(near.size()));
    for (size_t i = 0; i < near.size(); ++i) ASSERT_EQ(again[i], FloatToHalf(near[i])) << i << " + " << step;
  }
}

TEST(Layout, WhatFloat16CannotHoldIsInfinite) {
  const std::vector<float> values{65504, 65519, 65520, -65520, 1e30F, -std::numeric_limits<float>::infinity(), 1e-9F};
  std::vector<uint16_t> kept(values.size());
  std::vector<float> back(values.size());
  const Shape shape{static_cast<int64_t>(values.size())};
  ConvertLayout(values.data(), Layout::kPlain, kept.data(), Layout::kPlainFloat16, shape, sizeof(float));
  ConvertLayout(kept.data(), Layout::kPlainFloat16, back.data(), Layout::kPlain, shape, sizeof(float));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(back, (std::vector<float>{65504, 65504, kInfinity, -kInfinity, kInfinity, -kInfinity, 0}));
}

TEST(Layout, OnlyFloat32IsKeptAsANarrowerType) {
  EXPECT_EQ(StoredType(Layout::kChannelsLast, kFloat32), kFloat32);
  EXPECT_EQ(StoredType(Layout::kChannelsLast, kInt8), kInt8);
  EXPECT_EQ(StoredType(Layout::kChannelsLastBFloat16, kFloat32), kBFloat16);
  EXPECT_EQ(StoredType(Layout::kPlainFloat16, kFloat32), kFloat16);
  ExpectError([] { StoredType(Layout::kPlainBFloat16, kFloat64); }, ErrorCategory::kInternal, "values of float64");
  char bytes[8] = {};
  ExpectError([&] { ConvertLayout(bytes, Layout::kPlain, bytes + 4, Layout::kPlainBFloat16, Shape{2}, 2); },
              ErrorCategory::kInternal, "only float32");
}

TEST(Layout, NamesAreOfOneLayout) {
  std::set<char> letters;
  for (size_t i = 0; i < AllLayouts().size(); ++i) {
    const Layout layout = AllLayouts()[i];
    EXPECT_EQ(static_cast<size_t>(layout), i) << "the table is by number";
    EXPECT_EQ(LayoutNamed(ToString(layout)), layout);
    EXPECT_TRUE(letters.insert(LetterOf(layout)).second);
  }
}

TEST(Layout, NamesAxesAndShapes) {
  EXPECT_EQ(ToString(Layout::kPlain), "plain");
  EXPECT_EQ(ToString(Layout::kChannelsLast), "channels_last");
  EXPECT_EQ(ToString(Layout::kPlainBFloat16), "plain_bf16");
  EXPECT_EQ(LayoutNamed("channels_last_bf16"), Layout::kChannelsLastBFloat16);
  EXPECT_EQ(LayoutNamed("channels_last"), Layout::kChannelsLast);
  EXPECT_EQ(LayoutNamed("diagonal"), std::nullopt);
  EXPECT_EQ(Keeping(Layout::kChannelsLast, kBFloat16), Layout::kChannelsLastBFloat16);
  EXPECT_EQ(Keeping(Layout::kPlainBFloat16, kFloat16), Layout::kPlainFloat16);
  EXPECT_EQ(Keeping(Layout::kChannelsLastFloat16, kFloat32), Layout::kChannelsLast);
  EXPECT_EQ(NarrowType(Layout::kChannelsLastFloat16), kFloat16);
  EXPECT_EQ(NarrowType(Layout::kChannelsLast), std::nullopt);
  EXPECT_EQ(PhysicalShape(Shape{1, 64, 56, 55}, Layout::kChannelsLastBFloat16), (Shape{1, 56, 55, 64}));
  EXPECT_EQ(PhysicalAxes(Layout::kChannelsLast, 4), (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(PhysicalShape(Shape{1, 64, 56, 55}, Layout::kChannelsLast), (Shape{1, 56, 55, 64}));
  EXPECT_EQ(PhysicalShape(Shape{4, 5}, Layout::kPlain), (Shape{4, 5}));
  ExpectError([] { PhysicalAxes(Layout::kChannelsLast, 2); }, ErrorCategory::kInternal, "a value of rank 2");
}

}  // namespace
}  // namespace collage
