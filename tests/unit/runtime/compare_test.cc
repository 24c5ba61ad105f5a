// compare_test.cc: agreement within a tolerance.
#include "runtime/compare.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace collage {
namespace {

Tensor Floats(std::vector<float> values) {
  return Tensor::Of<float>({static_cast<int64_t>(values.size())}, kFloat32, std::span<const float>(values));
}

TEST(Compare, WithinToleranceAgrees) {
  const Comparison result = Compare(Floats({1.0f, 100.05f}), Floats({1.0f, 100.0f}), {1e-3, 0});
  EXPECT_TRUE(result.agrees);
  EXPECT_NEAR(result.max_absolute_error, 0.05, 1e-4);
  EXPECT_NEAR(result.max_relative_error, 0.0005, 1e-5);
  EXPECT_EQ(result.difference, "");
}

TEST(Compare, FirstDifferenceIsNamed) {
  const Comparison result = Compare(Floats({1, 2, 3}), Floats({1, 2.5, 4}), {1e-3, 1e-3});
  EXPECT_FALSE(result.agrees);
  EXPECT_EQ(result.difference, "element 1 of 3: got 2, wanted 2.5");
}

/// An output that is not finite is no output, however lenient a tolerance is.
TEST(Compare, NotANumberAgreesWithItselfOnly) {
  constexpr Tolerance kAny{1e30, 1e30};
  const auto is_far = [&](float a, float b) {
    const Comparison result = Compare(Floats({1, a}), Floats({1, b}), kAny);
    return !result.agrees && std::isinf(result.max_absolute_error) && std::isinf(result.max_relative_error) &&
           result.difference.starts_with("element 1 of 2: got ");
  };
  const Comparison same = Compare(Floats({NAN, INFINITY, -INFINITY, 2}), Floats({-NAN, INFINITY, -INFINITY, 2}), {});
  EXPECT_TRUE(same.agrees);
  EXPECT_EQ(same.max_absolute_error, 0);
  EXPECT_EQ(same.max_relative_error, 0);
  EXPECT_TRUE(is_far(NAN, 1));
  EXPECT_TRUE(is_far(1, NAN));
  EXPECT_TRUE(is_far(INFINITY, -INFINITY));
  EXPECT_TRUE(is_far(INFINITY, 1));
  EXPECT_TRUE(is_far(1, INFINITY));
  EXPECT_TRUE(is_far(NAN, INFINITY));
}

TEST(Compare, NotANumberIsFoundInEachFloat) {
  for (const DataType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    const Tensor numbers = Tensor::Zeros({3}, dtype);
    const Tensor others = Tensor::Zeros({3}, dtype);
    others.Set(2, NAN);
    EXPECT_FALSE(Compare(others, numbers, ToleranceFor(numbers)).agrees) << dtype.ToString();
    EXPECT_FALSE(Compare(numbers, others, ToleranceFor(others)).agrees) << dtype.ToString();
    EXPECT_TRUE(Compare(others, others.Clone(), ToleranceFor(others)).agrees) << dtype.ToString();
  }
}

TEST(Compare, TypesMustBeEqual) {
  EXPECT_EQ(Compare(Floats({1}), Floats({1, 2}), {}).difference, "got float32 (1), wanted float32 (2)");
  EXPECT_EQ(Compare(Floats({1}), Tensor::Zeros({1}, kInt8), {}).difference, "got float32 (1), wanted int8 (1)");
}

TEST(Compare, IntegersMustBeExact) {
  const Tensor a = Tensor::Zeros({2}, kInt32);
  const Tensor b = Tensor::Zeros({2}, kInt32);
  b.Set(1, 1);
  EXPECT_TRUE(Compare(a, a, ToleranceFor(a)).agrees);
  EXPECT_FALSE(Compare(b, a, ToleranceFor(a)).agrees);
}

TEST(Compare, FloatToleranceGrowsWithTheLargestElement) {
  EXPECT_TRUE(Compare(Floats({1000, 0.05f}), Floats({1000, 0}), ToleranceFor(Floats({1000, 0}))).agrees);
  EXPECT_FALSE(Compare(Floats({1, 0.05f}), Floats({1, 0}), ToleranceFor(Floats({1, 0}))).agrees);
}

TEST(Compare, LowerPrecisionsAreForFloat32Alone) {
  const Tensor expected = Floats({1, 0.5f});
  const Tensor off = Floats({1.01f, 0.5f});
  EXPECT_FALSE(Compare(off, expected, ToleranceFor(expected)).agrees);
  EXPECT_FALSE(Compare(off, expected, ToleranceFor(expected, std::nullopt)).agrees);
  EXPECT_TRUE(Compare(off, expected, ToleranceFor(expected, kBFloat16)).agrees);
  EXPECT_TRUE(Compare(off, expected, ToleranceFor(expected, kFloat16)).agrees);
  EXPECT_EQ(ToleranceFor(Tensor::Zeros({2}, kInt64), kBFloat16).absolute, 0) << "integers are exact";
}

}  // namespace
}  // namespace collage
