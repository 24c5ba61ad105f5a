// Timing of a GPU whose clocks are watched.
#include "cost/measure/device_timing.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "collage/runtime/device.h"

namespace collage {
namespace {

TEST(DeviceTimingTest, WhatIsTimedWhileTheGpuThrottlesIsTimedAgain) {
  if (std::getenv("COLLAGE_TEST_GPU") != nullptr) GTEST_SKIP() << "only the stand-in's clocks can be set";
  setenv("STANDIN_CUDA_WORK_US", "8", 1);
  const DeviceBuffer a(Memory::kCuda, 1000), b(Memory::kCuda, 1000);
  const auto timing = DeviceTiming::Make(
      Memory::kCuda, [&] { GetDevice(Memory::kCuda).CopyWithin(b.address(), a.address(), 1000); }, CacheLevel::kNear);
  ASSERT_NE(timing, nullptr);
  int calls = 0;
  const auto time = [&](int throttled_calls) {
    calls = 0;
    return TimeUndisturbed(
        [&] {
          const bool is_throttled = ++calls <= throttled_calls;
          setenv("STANDIN_NVML_MHZ", is_throttled ? "1100" : "1980", 1);
          setenv("STANDIN_NVML_REASONS", is_throttled ? "0x40" : "0", 1);
          Samples samples;
          samples.Add(timing->Seconds(1));
          return samples;
        },
        timing->watch());
  };
  EXPECT_NEAR(time(0).drift, 1, 1e-6);
  EXPECT_EQ(calls, 1);
  EXPECT_NEAR(time(1).drift, 1, 1e-6);
  EXPECT_EQ(calls, 3) << "the second one began while the GPU was hot";
  EXPECT_NEAR(time(9).drift, 1.8, 1e-6);
  EXPECT_EQ(calls, 3);
  unsetenv("STANDIN_NVML_MHZ");
  unsetenv("STANDIN_NVML_REASONS");
  unsetenv("STANDIN_CUDA_WORK_US");
}

}  // namespace
}  // namespace collage
