#include "cost/machine/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "collage/ir/infer_type.h"
#include "collage/runtime/thread_pool.h"

namespace collage {
namespace {

using Ints = std::vector<int64_t>;

Function Typed(std::vector<Var> params, const Expr& body) {
  const Function function = MakeFunction(std::move(params), body);
  InferType(function);
  return function;
}

Var Data(const Shape& shape, DataType dtype = kFloat32) { return MakeVar("x", TensorType(shape, dtype)); }
Expr Weight(const Shape& shape) { return MakeConstant(Tensor::Zeros(shape, kFloat32)); }

TEST(WorkTest, CountsProductsAndBytes) {
  const Var x = Data({4, 64});
  const Work work = WorkOf(Typed({x}, MakeCall("nn.relu", {MakeCall("nn.dense", {x, Weight({10, 64})})})));
  EXPECT_EQ(work.multiply_adds, 4 * 64 * 10);
  EXPECT_EQ(work.constant_bytes, 10 * 64 * 4);
  EXPECT_EQ(work.boundary_bytes, 4 * 64 * 4 + 4 * 10 * 4);
}

TEST(WorkTest, ValuesKeptInFewerBitsAreFewerBytes) {
  const Var x = Data({1, 8, 4, 4});
  const Function relu = Typed({x}, MakeCall("nn.relu", {x}));
  const double all = WorkOf(relu).boundary_bytes;
  EXPECT_EQ(WorkOf(relu, {{Layout::kChannelsLast}, {Layout::kPlain}}).boundary_bytes, all);
  EXPECT_EQ(WorkOf(relu, {{Layout::kChannelsLast}, {Layout::kChannelsLastBFloat16}}).boundary_bytes, all * 3 / 4);
  EXPECT_EQ(WorkOf(relu, {{Layout::kPlainBFloat16}, {Layout::kPlainBFloat16}}).boundary_bytes, all / 2);
}

TEST(WorkTest, IsLessInLowerPrecision) {
  const Work work = InLowerPrecision({.multiply_adds = 160, .constant_bytes = 8, .boundary_bytes = 4, .spared = 16});
  EXPECT_EQ(work.multiply_adds, 10);
  EXPECT_EQ(work.spared, 1);
  EXPECT_EQ(work.constant_bytes, 4);
  EXPECT_EQ(work.boundary_bytes, 4) << "values at the boundary are as ever";
}

TEST(WorkTest, ProductsOfConvolutionsAreThoseWithinTheData) {
  // Counted one by one: for each output position and tap, whether it falls on the data.
  const auto count = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
    double valid = 0;
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t at = o * stride + k * dilation - pad;
        valid += at >= 0 && at < in ? 1 : 0;
      }
    }
    return valid;
  };
  const Var x = Data({2, 6, 11, 9});
  const Attrs attrs{{"padding", Ints{2, 1}}, {"strides", Ints{2, 1}}, {"dilation", Ints{1, 2}}, {"groups", 2}};
  const Work work = WorkOf(Typed({x}, MakeCall("nn.conv2d", {x, Weight({8, 3, 5, 3})}, attrs)));
  // Heights: (11 + 4 - 5) / 2 + 1 = 6; widths: 9 + 2 - 5 + 1 = 7.
  EXPECT_EQ(work.multiply_adds, 2 * 8 * 3 * count(11, 6, 5, 2, 1, 2) * count(9, 7, 3, 1, 2, 1));
  const Work transposed = WorkOf(Typed({x}, MakeCall("nn.conv2d_transpose", {x, Weight({6, 5, 4, 4})},
                                                     {{"strides", Ints{2, 2}}, {"padding", Ints{1, 1}}})));
  // Each of the data's positions writes to those of its window that are in the result, 22 x 18.
  EXPECT_EQ(transposed.multiply_adds, 2 * 6 * 5 * count(22, 11, 4, 2, 1, 1) * count(18, 9, 4, 2, 1, 1));
}

TEST(WorkTest, NarrowProductsCountLess) {
  const Var half = Data({4, 64}, kFloat16);
  const Expr weight = MakeConstant(Tensor::Zeros({10, 64}, kFloat16));
  EXPECT_EQ(WorkOf(Typed({half}, MakeCall("nn.dense", {half, weight}))).multiply_adds, 4 * 64 * 10 / 16.0);
}

TEST(WorkTest, FastAlgorithmsSpareProducts) {
  const Var x = Data({1, 8, 12, 12});
  const auto spared = [&](const Shape& weight, const Attrs& attrs) {
    const Work work = WorkOf(Typed({x}, MakeCall("nn.conv2d", {x, Weight(weight)}, attrs)));
    return work.spared / work.multiply_adds;
  };
  EXPECT_EQ(spared({16, 8, 3, 3}, {{"padding", Ints{1, 1}}}), 0.75);
  EXPECT_EQ(spared({16, 8, 3, 3}, {{"strides", Ints{2, 1}}}), 0);
  EXPECT_EQ(spared({16, 8, 3, 3}, {{"dilation", Ints{2, 2}}}), 0);
  EXPECT_EQ(spared({16, 4, 3, 3}, {{"groups", 2}}), 0);
  EXPECT_EQ(spared({16, 8, 3, 1}, {}), 0.5);
  EXPECT_DOUBLE_EQ(spared({16, 8, 1, 5}, {}), 0.6);
  EXPECT_EQ(spared({16, 8, 1, 1}, {}), 0.125);
  EXPECT_EQ(spared({16, 8, 1, 1}, {{"strides", Ints{2, 2}}}), 0);
  const MachineRates rates{1e9, {1e12, 1e11, 1e10}};
  const double direct = RooflineSeconds({4e6, 0, 1000}, rates, 1, CacheLevel::kNear);
  EXPECT_DOUBLE_EQ(
      RooflineSeconds({.multiply_adds = 4e6, .boundary_bytes = 1000, .spared = 3e6}, rates, 1, CacheLevel::kNear),
      direct / 4);
}

TEST(RooflineTest, TheSlowerOfComputingAndMovingBounds) {
  const MachineRates rates{1e9, {1e12, 1e11, 1e10}};
  const double computing = RooflineSeconds({1e6, 0, 1000}, rates, 1, CacheLevel::kNear);
  EXPECT_LT(computing, 1e-3);
  EXPECT_GT(computing, 0.8e-3);
  // Weights come from where the model leaves them.
  const Work weights{0, 1e6, 0};
  EXPECT_LT(RooflineSeconds(weights, rates, 1, CacheLevel::kNear),
            RooflineSeconds(weights, rates, 1, CacheLevel::kShared));
  EXPECT_NEAR(RooflineSeconds(weights, rates, 1, CacheLevel::kMemory), 1e-4, 2e-5);
  // Values at the boundary come from the nearest cache that holds them.
  const double near = static_cast<double>(CacheBytes(CacheLevel::kNear));
  EXPECT_LT(RooflineSeconds({0, 0, near}, rates, 1, CacheLevel::kMemory) * 2,
            RooflineSeconds({0, 0, 2 * near}, rates, 1, CacheLevel::kMemory));
  EXPECT_EQ(RooflineSeconds({1e9, 1e9, 1e9}, {}, 1, CacheLevel::kMemory), 0) << "nothing is known of the machine";
}

/// Multiply-adds a second in registers of four lanes, as every processor of this kind has them.
double NarrowMultiplyAddRate() {
  typedef float Lanes __attribute__((vector_size(4 * sizeof(float))));
  constexpr int kSums = 12;
  constexpr int64_t kRounds = 200'000;
  volatile float factor = 0.5F;
  double shortest = 1e9;
  for (int repeat = 0; repeat < 10; ++repeat) {
    Lanes sums[kSums] = {};
    const Lanes x = Lanes{} + factor;
    const auto started = std::chrono::steady_clock::now();
    for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
      for (Lanes& sum : sums) sum = sum * x + x;
    }
    for (Lanes& sum : sums) factor = factor + 1e-9F * sum[0];
    shortest = std::min(shortest, std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  return static_cast<double>(kRounds) * kSums * 4 / shortest;
}

TEST(RooflineTest, ProcessorsWithWideRegistersAreNotTakenForSlowOnes) {
  // Far from a race: vectors wider than the processor's are a tenth as fast.
  SetNumThreads(1);
  EXPECT_GT(MeasureMultiplyAddRate(), NarrowMultiplyAddRate() / 2);
}

TEST(RooflineTest, TheMachineHasRates) {
  SetNumThreads(1);
  const double multiply_adds = MeasureMultiplyAddRate();
  EXPECT_GT(multiply_adds, 1e8);
  EXPECT_LT(multiply_adds, 1e13);
  EXPECT_GT(MeasureReadRate(CacheLevel::kNear), 1e8);
  EXPECT_GT(MeasureReadRate(CacheLevel::kMemory), 1e7);
  EXPECT_GT(MeasureCopyRate(16 << 10), 1e8);
}

}  // namespace
}  // namespace collage
