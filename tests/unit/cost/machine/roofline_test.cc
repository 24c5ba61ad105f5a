#include "cost/machine/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "collage/runtime/thread_pool.h"

namespace collage {
namespace {

TEST(RooflineTest, SparedProductsAreNotBounds) {
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
