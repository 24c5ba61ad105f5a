// Kernels on the driver without a GPU, and their mistakes, which it finds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "backends/cuda_driver/driver.h"
#include "collage/support/error.h"
#include "support/file.h"
#include "test_paths.h"

namespace collage::cuda_driver {
namespace {

constexpr size_t kElements = 64;
constexpr unsigned kSharedBytes = 1024;
constexpr uint32_t kPoison = 0xFFFFFFFF;  ///< bytes that nobody has written

/// Runs kernels of small_kernels.cc, in a process of their own: a mistake is the end of all work on the device.
class EmulationDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("COLLAGE_TEST_GPU") != nullptr) GTEST_SKIP() << "of the driver without a GPU";
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }

  /// Returns what the device has in memory after the kernel; nothing where it has failed.
  static std::vector<uint32_t> Run(const char* kernel, uint64_t number, unsigned threads = 32) {
    const Driver& driver = GetDriver();
    Context context = nullptr;
    Stream stream = nullptr;
    Address memory = 0;
    Module module = nullptr;
    Function function = nullptr;
    DeviceNumber device = 0;
    driver.Check(driver.DeviceGet(&device, 0), "find");
    driver.Check(driver.DevicePrimaryCtxRetain(&context, device), "use");
    driver.Check(driver.CtxSetCurrent(context), "use");
    driver.Check(driver.StreamCreate(&stream, kStreamAlone), "create");
    driver.Check(driver.MemAlloc(&memory, kElements * sizeof(uint32_t)), "allocate");
    const std::string image = ReadFile(std::string(kTestStandins) + "/libsmall_kernels.so");
    driver.Check(driver.ModuleLoadData(&module, image.data()), "load");
    driver.Check(driver.ModuleGetFunction(&function, module, kernel), "find");
    void* parameters[] = {&memory, &number};
    driver.Check(driver.LaunchKernel(function, 1, 1, 1, threads, 1, 1, kSharedBytes, stream, parameters, nullptr),
                 "launch");
    number = 1000;  // it was read
    if (driver.StreamSynchronize(stream) != 0) return {};
    std::vector<uint32_t> elements(kElements);
    driver.Check(driver.MemcpyDtoHAsync(elements.data(), memory, kElements * sizeof(uint32_t), stream), "copy");
    return elements;
  }

  /// Ends a child: with 0 if `is_right`.
  [[noreturn]] static void Exit(bool is_right) { std::_Exit(is_right ? 0 : 1); }
  /// Ends a child: with 0 if the kernel failed.
  [[noreturn]] static void ExpectFailure(const char* kernel, uint64_t number, unsigned threads = 32) {
    Exit(Run(kernel, number, threads).empty());
  }
};

testing::ExitedWithCode Right() { return testing::ExitedWithCode(0); }

bool HasCounted(const std::vector<uint32_t>& elements) {
  for (uint32_t i = 0; i < 32; ++i) {
    if (elements.at(i) != i + 5) return false;
  }
  return elements.at(32) == kPoison;
}

bool HasSummed(const std::vector<uint32_t>& elements) {
  for (uint32_t i = 0; i < 32; ++i) {
    if (elements.at(i) != 31u * 32 / 2 || elements.at(32 + i) != 31 - i + 2) return false;
  }
  return true;
}

TEST_F(EmulationDeathTest, ThreadsComputeAndShuffle) {
  EXPECT_EXIT(Exit(HasCounted(Run("count", 5))), Right(), "");
  EXPECT_EXIT(Exit(HasSummed(Run("sum", 2))), Right(), "");
}

TEST_F(EmulationDeathTest, AReadThatNothingOrdersBehindAWriteIsARace) {
  setenv("STANDIN_CUDA_RACES", "1", 1);
  EXPECT_EXIT(Exit(Run("pass_on", 0).at(32) == 1), Right(), "");
  EXPECT_EXIT(ExpectFailure("pass_on", 1), Right(), "in no order");
  unsetenv("STANDIN_CUDA_RACES");
}

TEST_F(EmulationDeathTest, TheOrderOfThreadsShowsWhatIsNotSynchronised) {
  // In one order the neighbour has written already, in the other it has not.
  EXPECT_EXIT(Exit(Run("pass_on", 1).at(32 + 5) == kPoison), Right(), "");
  setenv("STANDIN_CUDA_REVERSED", "1", 1);
  EXPECT_EXIT(Exit(Run("pass_on", 1).at(32 + 5) == 6), Right(), "");
  unsetenv("STANDIN_CUDA_REVERSED");
}

TEST_F(EmulationDeathTest, AccessesOutsideOfMemoryAreFound) {
  EXPECT_EXIT(Exit(!Run("run_over", 32).empty()), Right(), "");
  EXPECT_EXIT(ExpectFailure("run_over", 33), Right(),
              "kernel run_over, block 0, thread 31: writes 4 bytes outside of the device's memory");
}

TEST_F(EmulationDeathTest, MisalignedAccessesAreFound) {
  EXPECT_EXIT(ExpectFailure("slip", 2), Right(), "thread 3: writes 4 bytes at an address that is no multiple of 4");
}

TEST_F(EmulationDeathTest, ThreadsThatDoNotMeetAreFound) {
  EXPECT_EXIT(ExpectFailure("leave", 7), Right(), "do not wait for the same thing");
}

bool HasPassedAcross(const std::vector<uint32_t>& elements) {
  for (uint32_t i = 0; i < 64; ++i) {
    if (elements.at(i) != (i ^ 32)) return false;
  }
  return true;
}

TEST_F(EmulationDeathTest, WarpsOfABlockWaitForEachOther) {
  setenv("STANDIN_CUDA_RACES", "1", 1);
  for (const bool is_reversed : {false, true}) {
    if (is_reversed) setenv("STANDIN_CUDA_REVERSED", "1", 1);
    EXPECT_EXIT(Exit(HasPassedAcross(Run("pass_across", 0, 64))), Right(), "");
    EXPECT_EXIT(ExpectFailure("pass_across", 1, 64), Right(), "in no order");
    EXPECT_EXIT(ExpectFailure("pass_across", 2, 64), Right(), "do not wait for");
  }
  unsetenv("STANDIN_CUDA_REVERSED");
  unsetenv("STANDIN_CUDA_RACES");
}

bool HasWordsOfMatrices(const std::vector<uint32_t>& elements) {
  for (uint32_t i = 0; i < 32; ++i) {
    // Word i % 4 of rows i / 4 and 24 + i / 4.
    if (elements.at(i) != i + 1000 * (96 + i)) return false;
  }
  return true;
}

TEST_F(EmulationDeathTest, MatricesAreSharedOutInWords) {
  EXPECT_EXIT(Exit(HasWordsOfMatrices(Run("load_matrices", 0))), Right(), "");
  EXPECT_EXIT(ExpectFailure("load_matrices", 8), Right(), "at an address that is no multiple of 16");
}

TEST_F(EmulationDeathTest, WhatIsNoSuchCodeIsRefused) {
  const auto load = [] {
    Run("count", 0);
    Module module = nullptr;
    return GetDriver().ModuleLoadData(&module, ".version 8.0\n");
  };
  EXPECT_EXIT(Exit(load() == kNoBinaryForGpu), Right(), "");
}

}  // namespace
}  // namespace collage::cuda_driver
