// Collage relies on all this in NVIDIA's driver. The stand-in is tested, and the real driver where there is a GPU.
#include "backends/cuda_driver/driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "collage/support/error.h"

namespace collage::cuda_driver {
namespace {

constexpr size_t kBytes = size_t{1} << 16;

/// A stream and memory in the GPU's context.
class DriverTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      driver_ = &GetDriver();
    } catch (const Error& error) {
      GTEST_SKIP() << error.message();
    }
    DeviceNumber device = -1;
    ASSERT_EQ(driver_->DeviceGet(&device, 0), 0);
    ASSERT_EQ(driver_->DevicePrimaryCtxRetain(&context_, device), 0);
    ASSERT_EQ(driver_->CtxSetCurrent(context_), 0);
    ASSERT_EQ(driver_->StreamCreate(&stream_, kStreamAlone), 0);
    ASSERT_EQ(driver_->MemAlloc(&device_, kBytes), 0);
    ASSERT_EQ(driver_->MemAllocHost(&pinned_, kBytes), 0);
  }
  void TearDown() override {
    if (device_ == 0) return;
    EXPECT_EQ(driver_->MemFree(device_), 0);
  }

  std::vector<unsigned char> Numbers() const {
    std::vector<unsigned char> numbers(kBytes);
    std::iota(numbers.begin(), numbers.end(), static_cast<unsigned char>(1));
    return numbers;
  }
  /// Bytes of the device, by way of pageable memory.
  std::vector<unsigned char> Read() {
    std::vector<unsigned char> bytes(kBytes);
    EXPECT_EQ(driver_->MemcpyDtoHAsync(bytes.data(), device_, kBytes, stream_), 0);
    EXPECT_EQ(driver_->StreamSynchronize(stream_), 0);
    return bytes;
  }

  const Driver* driver_ = nullptr;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  Address device_ = 0;
  void* pinned_ = nullptr;
};

TEST_F(DriverTest, ACopyFromPageableMemoryHasReadItsSourceWhenItReturns) {
  std::vector<unsigned char> source = Numbers();
  ASSERT_EQ(driver_->MemcpyHtoDAsync(device_, source.data(), kBytes, stream_), 0);
  std::ranges::fill(source, static_cast<unsigned char>(0));
  EXPECT_EQ(Read(), Numbers());
}

TEST_F(DriverTest, EventsHaveTimeOnceTheyAreReachedIfTheyWereMadeWithIt) {
  constexpr Status kInvalidHandle = 400;
  Event begin = nullptr, end = nullptr, timeless = nullptr;
  ASSERT_EQ(driver_->EventCreate(&begin, kEventWithTime), 0);
  ASSERT_EQ(driver_->EventCreate(&end, kEventWithTime), 0);
  ASSERT_EQ(driver_->EventCreate(&timeless, kEventWithoutTime), 0);
  float milliseconds = -1;
  EXPECT_EQ(driver_->EventElapsedTime(&milliseconds, begin, end), kInvalidHandle) << "nothing was recorded";
  for (Event event : {begin, timeless, end}) ASSERT_EQ(driver_->EventRecord(event, stream_), 0);
  ASSERT_EQ(driver_->EventSynchronize(end), 0);
  EXPECT_EQ(driver_->EventElapsedTime(&milliseconds, begin, timeless), kInvalidHandle);
  EXPECT_EQ(driver_->EventElapsedTime(&milliseconds, begin, end), 0);
  EXPECT_GE(milliseconds, 0);
}

TEST_F(DriverTest, ACopyFromPinnedMemoryIsDoneWhenItsEventIs) {
  Event event = nullptr;
  ASSERT_EQ(driver_->EventCreate(&event, kEventWithoutTime), 0);
  ASSERT_EQ(driver_->EventSynchronize(event), 0) << "nothing was recorded: nothing to wait for";
  std::memcpy(pinned_, Numbers().data(), kBytes);
  ASSERT_EQ(driver_->MemcpyHtoDAsync(device_, pinned_, kBytes, stream_), 0);
  ASSERT_EQ(driver_->EventRecord(event, stream_), 0);
  ASSERT_EQ(driver_->EventSynchronize(event), 0);
  std::memset(pinned_, 0, kBytes);
  EXPECT_EQ(Read(), Numbers());
}

TEST_F(DriverTest, ACopyToPageableMemoryIsDoneWhenItReturns) {
  const std::vector<unsigned char> source = Numbers();
  ASSERT_EQ(driver_->MemcpyHtoDAsync(device_, source.data(), kBytes, stream_), 0);
  std::vector<unsigned char> target(kBytes);
  ASSERT_EQ(driver_->MemcpyDtoHAsync(target.data(), device_, kBytes, stream_), 0);
  EXPECT_EQ(target, source);
}

TEST_F(DriverTest, WorkOnAStreamIsInOrder) {
  Address other = 0;
  ASSERT_EQ(driver_->MemAlloc(&other, kBytes), 0);
  const std::vector<unsigned char> zeros(kBytes), source = Numbers();
  ASSERT_EQ(driver_->MemcpyHtoDAsync(device_, zeros.data(), kBytes, stream_), 0);
  ASSERT_EQ(driver_->MemcpyHtoDAsync(other, source.data(), kBytes, stream_), 0);
  ASSERT_EQ(driver_->MemcpyDtoDAsync(device_, other, kBytes, stream_), 0);
  EXPECT_EQ(Read(), source);
  EXPECT_EQ(driver_->MemFree(other), 0);
}

TEST_F(DriverTest, WhatIsCapturedIsDoneWhenItsGraphIsLaunched) {
  const std::vector<unsigned char> zeros(kBytes);
  ASSERT_EQ(driver_->MemcpyHtoDAsync(device_, zeros.data(), kBytes, stream_), 0);
  ASSERT_EQ(driver_->StreamBeginCapture(stream_, kCaptureOfThread), 0);
  ASSERT_EQ(driver_->MemsetD32Async(device_, 0x05040302, 1, stream_), 0);
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  ASSERT_EQ(driver_->StreamEndCapture(stream_, &graph), 0);
  ASSERT_EQ(driver_->GraphInstantiate(&exec, graph, 0), 0);
  EXPECT_EQ(driver_->GraphDestroy(graph), 0);
  EXPECT_EQ(Read(), zeros) << "it was done before";
  for (int times = 0; times < 2; ++times) {
    ASSERT_EQ(driver_->MemcpyHtoDAsync(device_, zeros.data(), kBytes, stream_), 0);
    ASSERT_EQ(driver_->GraphLaunch(exec, stream_), 0);
    EXPECT_EQ(Read()[3], 5);
  }
  EXPECT_EQ(driver_->GraphExecDestroy(exec), 0);
}

TEST_F(DriverTest, WhatAllocatesOrWaitsSpoilsACapture) {
  ASSERT_EQ(driver_->StreamBeginCapture(stream_, kCaptureOfThread), 0);
  EXPECT_NE(driver_->StreamSynchronize(stream_), 0);
  Graph graph = nullptr;
  EXPECT_NE(driver_->StreamEndCapture(stream_, &graph), 0);
  EXPECT_EQ(graph, nullptr);
  ASSERT_EQ(driver_->StreamBeginCapture(stream_, kCaptureOfThread), 0);
  Address address = 0;
  EXPECT_NE(driver_->MemAlloc(&address, kBytes), 0);
  EXPECT_NE(driver_->StreamEndCapture(stream_, &graph), 0);
  EXPECT_EQ(driver_->StreamSynchronize(stream_), 0) << "the stream is as before";
}

TEST_F(DriverTest, CopiesThatLeaveAnAllocationFail) {
  const std::vector<unsigned char> source(2 * kBytes);
  EXPECT_NE(driver_->MemcpyHtoDAsync(~Address{0}, source.data(), kBytes, stream_), 0);
  std::vector<unsigned char> target(kBytes);
  EXPECT_NE(driver_->MemcpyDtoHAsync(target.data(), ~Address{0}, kBytes, stream_), 0);
}

TEST_F(DriverTest, EveryThreadNeedsTheContext) {
  std::thread([&] {
    Address address = 0;
    EXPECT_NE(driver_->MemAlloc(&address, kBytes), 0);
    EXPECT_EQ(driver_->CtxSetCurrent(context_), 0);
    EXPECT_EQ(driver_->MemAlloc(&address, kBytes), 0);
    EXPECT_EQ(driver_->MemFree(address), 0);
  }).join();
}

TEST_F(DriverTest, MemoryThatIsNotThereIsRefusedAsSuch) {
  Address address = 0;
  EXPECT_EQ(driver_->MemAlloc(&address, size_t{1} << 50), kOutOfMemory);
  size_t free = 0, total = 0;
  EXPECT_EQ(driver_->MemGetInfo(&free, &total), 0);
  EXPECT_LE(free, total);
}

TEST_F(DriverTest, FailuresHaveNames) {
  try {
    driver_->Check(kOutOfMemory, "allocate");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kResource);
    EXPECT_NE(error.message().find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << error.message();
  }
}

using DriverDeathTest = DriverTest;

TEST_F(DriverDeathTest, TheHostCannotTouchMemoryOfTheDevice) {
  EXPECT_DEATH(std::memset(reinterpret_cast<void*>(device_), 0, 1), "");
}

}  // namespace
}  // namespace collage::cuda_driver
