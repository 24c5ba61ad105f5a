// value_test.cc: when run-time values are equal.
#include "collage/ir/value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace collage {
namespace {

Value Float(float value) { return Tensor::Of<float>({}, kFloat32, std::vector<float>{value}); }

TEST(ValueTest, ElementsThatAreNotFiniteEqualThemselvesAlone) {
  constexpr double kAny = 1e30;
  const float values[] = {NAN, INFINITY, -INFINITY, 5};
  for (const float a : values) {
    for (const float b : values) {
      const bool is_same = std::isnan(a) ? std::isnan(b) : a == b;
      EXPECT_EQ(ValuesEqual(Float(a), Float(b), kAny), is_same) << a << " and " << b;
    }
  }
  EXPECT_TRUE(ValuesEqual(Float(5), Float(5.5), 0.1));
}

}  // namespace
}  // namespace collage
