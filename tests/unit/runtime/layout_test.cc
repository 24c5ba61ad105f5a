// layout_test.cc: conversions against the definition, element by element.
#include "collage/runtime/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "collage/runtime/thread_pool.h"
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

TEST(Layout, NamesAxesAndShapes) {
  EXPECT_EQ(ToString(Layout::kPlain), "plain");
  EXPECT_EQ(ToString(Layout::kChannelsLast), "channels_last");
  EXPECT_EQ(PhysicalAxes(Layout::kChannelsLast, 4), (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(PhysicalShape(Shape{1, 64, 56, 55}, Layout::kChannelsLast), (Shape{1, 56, 55, 64}));
  EXPECT_EQ(PhysicalShape(Shape{4, 5}, Layout::kPlain), (Shape{4, 5}));
  ExpectError([] { PhysicalAxes(Layout::kChannelsLast, 2); }, ErrorCategory::kInternal, "a value of rank 2");
}

}  // namespace
}  // namespace collage
