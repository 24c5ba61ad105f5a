// random_inputs_test.cc: values lie where they should and depend on the seed alone.
#include "runtime/random_inputs.h"

#include <gtest/gtest.h>

#include <set>

namespace collage {
namespace {

TEST(RandomInputs, FloatsFillTheirInterval) {
  for (DataType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    const Tensor tensor = Tensor::Empty({10'000}, dtype);
    FillRandom(tensor, 1);
    double sum = 0;
    double least = 1;
    double most = -1;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      sum += tensor.At(i);
      least = std::min(least, tensor.At(i));
      most = std::max(most, tensor.At(i));
    }
    EXPECT_GE(least, -1.0) << dtype.ToString();
    EXPECT_LE(most, 1.0) << dtype.ToString();
    EXPECT_LT(least, -0.99) << dtype.ToString();
    EXPECT_GT(most, 0.99) << dtype.ToString();
    EXPECT_NEAR(sum / 10'000, 0, 0.05) << dtype.ToString();
  }
}

TEST(RandomInputs, IntegersTakeEveryValueOfTheirRange) {
  for (DataType dtype : {kInt8, kInt32, kInt64}) {
    const Tensor tensor = Tensor::Empty({1000}, dtype);
    FillRandom(tensor, 2, -3, 4);
    const std::vector<int64_t> values = tensor.ToInts();
    EXPECT_EQ(std::set<int64_t>(values.begin(), values.end()), (std::set<int64_t>{-3, -2, -1, 0, 1, 2, 3, 4}));
  }
  const Tensor flags = Tensor::Empty({1000}, kBool);
  FillRandom(flags, 2);
  const std::vector<int64_t> values = flags.ToInts();
  EXPECT_EQ(std::set<int64_t>(values.begin(), values.end()), (std::set<int64_t>{0, 1}));
}

TEST(RandomInputs, TheSeedDecides) {
  const Tensor a = Tensor::Empty({100}, kFloat32);
  const Tensor b = Tensor::Empty({100}, kFloat32);
  FillRandom(a, 5);
  FillRandom(b, 5);
  EXPECT_TRUE(BitEqual(a, b));
  FillRandom(b, 6);
  EXPECT_FALSE(BitEqual(a, b));
}

}  // namespace
}  // namespace collage
