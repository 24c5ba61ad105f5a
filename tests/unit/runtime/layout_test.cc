// layout_test.cc: conversions against the definition, element by element.
#include "collage/runtime/layout.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "collage/runtime/thread_pool.h"
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
  if (IsBFloat16(layout)) {
    std::vector<uint16_t> halves;
    for (float value : plain) halves.push_back(FloatToBFloat16(value));
    bytes.resize(halves.size() * sizeof(uint16_t));
    std::memcpy(bytes.data(), halves.data(), bytes.size());
  }
  if (!IsChannelsLast(layout)) return bytes;
  return ToChannelsLast(bytes, shape, StoredType(layout, kFloat32).size_bytes());
}

TEST(Layout, ValuesAreKeptAsBFloat16) {
  constexpr Layout kAll[] = {Layout::kPlain, Layout::kChannelsLast, Layout::kPlainBFloat16,
                             Layout::kChannelsLastBFloat16};
  for (int threads : {1, 3}) {
    SetNumThreads(threads);
    for (const Shape& shape :
         {Shape{2, 3, 5, 7}, {1, 33, 17}, {1, 1, 6, 9}, {3, 70, 1, 1}, {1, 64, 81, 83}, {2, 0, 3}}) {
      std::mt19937 random(5);
      std::vector<float> values(static_cast<size_t>(NumElements(shape)));
      for (float& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      std::vector<float> rounded;
      for (float value : values) rounded.push_back(BFloat16ToFloat(FloatToBFloat16(value)));
      for (const Layout from : kAll) {
        for (const Layout to : kAll) {
          SCOPED_TRACE(ToString(shape) + " from " + std::string(ToString(from)) + " to " + std::string(ToString(to)));
          const std::vector<float>& wanted = IsBFloat16(from) ? rounded : values;
          const std::vector<char> source = Kept(values, shape, from);
          const std::vector<char> expected = Kept(wanted, shape, to);
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

TEST(Layout, OnlyFloat32IsKeptAsBFloat16) {
  EXPECT_EQ(StoredType(Layout::kChannelsLast, kFloat32), kFloat32);
  EXPECT_EQ(StoredType(Layout::kChannelsLast, kInt8), kInt8);
  EXPECT_EQ(StoredType(Layout::kChannelsLastBFloat16, kFloat32), kBFloat16);
  ExpectError([] { StoredType(Layout::kPlainBFloat16, kFloat64); }, ErrorCategory::kInternal, "values of float64");
  char bytes[8] = {};
  ExpectError([&] { ConvertLayout(bytes, Layout::kPlain, bytes + 4, Layout::kPlainBFloat16, Shape{2}, 2); },
              ErrorCategory::kInternal, "only float32");
}

TEST(Layout, NamesAxesAndShapes) {
  EXPECT_EQ(ToString(Layout::kPlain), "plain");
  EXPECT_EQ(ToString(Layout::kChannelsLast), "channels_last");
  EXPECT_EQ(ToString(Layout::kPlainBFloat16), "plain_bf16");
  EXPECT_EQ(LayoutNamed("channels_last_bf16"), Layout::kChannelsLastBFloat16);
  EXPECT_EQ(LayoutNamed("channels_last"), Layout::kChannelsLast);
  EXPECT_EQ(LayoutNamed("diagonal"), std::nullopt);
  EXPECT_EQ(InBFloat16(Layout::kChannelsLast), Layout::kChannelsLastBFloat16);
  EXPECT_EQ(PhysicalShape(Shape{1, 64, 56, 55}, Layout::kChannelsLastBFloat16), (Shape{1, 56, 55, 64}));
  EXPECT_EQ(PhysicalAxes(Layout::kChannelsLast, 4), (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(PhysicalShape(Shape{1, 64, 56, 55}, Layout::kChannelsLast), (Shape{1, 56, 55, 64}));
  EXPECT_EQ(PhysicalShape(Shape{4, 5}, Layout::kPlain), (Shape{4, 5}));
  ExpectError([] { PhysicalAxes(Layout::kChannelsLast, 2); }, ErrorCategory::kInternal, "a value of rank 2");
}

}  // namespace
}  // namespace collage
