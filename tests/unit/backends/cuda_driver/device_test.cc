// A GPU as a device: memory, and copies of all sizes in the order in which they are asked for.
#include "collage/runtime/device.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "collage/runtime/device_timer.h"
#include "collage/runtime/recorded_work.h"
#include "collage/support/error.h"
#include "runtime/known_devices.h"

namespace collage {
namespace {

using Bytes = std::vector<unsigned char>;

/// Counts from `first` on.
Bytes Numbers(size_t size, int first) {
  Bytes numbers(size);
  for (size_t i = 0; i < size; ++i) numbers[i] = static_cast<unsigned char>((static_cast<size_t>(first) + i) % 251);
  return numbers;
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const KnownDevice& device : DescribeDevices()) {
      if (device.name == "cuda" && !device.reason.empty()) GTEST_SKIP() << device.reason;
    }
    device_ = &GetDevice(Memory::kCuda);
  }

  Device* device_ = nullptr;
};

TEST_F(CudaDeviceTest, BytesComeBack) {
  constexpr size_t kStaging = size_t{4} << 20;
  for (const size_t size :
       {size_t{1}, size_t{1000}, kStaging - 1, kStaging, kStaging + 1, 2 * kStaging, 5 * kStaging + 77}) {
    const DeviceBuffer buffer(Memory::kCuda, size);
    const Bytes in = Numbers(size, 3);
    device_->CopyIn(buffer.address(), in.data(), size);
    Bytes out(size);
    device_->CopyOut(out.data(), buffer.address(), size);
    EXPECT_TRUE(in == out) << size << " bytes";
  }
}

TEST_F(CudaDeviceTest, WhatIsAskedForIsDoneInOrder) {
  constexpr size_t kSize = size_t{9} << 20;
  const DeviceBuffer a(Memory::kCuda, kSize), b(Memory::kCuda, kSize);
  Bytes source = Numbers(kSize, 1);
  device_->CopyIn(a.address(), source.data(), kSize);
  device_->CopyWithin(b.address(), a.address(), kSize);
  const Bytes first = source;
  std::ranges::fill(source, static_cast<unsigned char>(7));  // the source may change when CopyIn returns
  device_->CopyIn(a.address(), source.data(), kSize);
  device_->Synchronize();
  Bytes out(kSize);
  device_->CopyOut(out.data(), b.address(), kSize);
  EXPECT_TRUE(out == first);
  device_->CopyOut(out.data(), a.address(), kSize);
  EXPECT_TRUE(out == source);
}

TEST_F(CudaDeviceTest, RecordedCopiesAreRepeated) {
  auto* recorder = dynamic_cast<RecordsWork*>(device_);
  ASSERT_NE(recorder, nullptr);
  constexpr size_t kSize = 1000;
  const DeviceBuffer a(Memory::kCuda, kSize), b(Memory::kCuda, kSize);
  const std::unique_ptr<RecordedWork> copy =
      recorder->Record([&] { device_->CopyWithin(b.address(), a.address(), kSize); });
  ASSERT_NE(copy, nullptr);
  for (const int first : {1, 2}) {
    const Bytes in = Numbers(kSize, first);
    Bytes out(kSize);
    device_->CopyIn(a.address(), in.data(), kSize);
    copy->Run();
    device_->CopyOut(out.data(), b.address(), kSize);
    EXPECT_EQ(out, in);
  }
}

TEST_F(CudaDeviceTest, WhatWaitsOrFailsIsNotRecorded) {
  auto* recorder = dynamic_cast<RecordsWork*>(device_);
  ASSERT_NE(recorder, nullptr);
  EXPECT_EQ(recorder->Record([&] { device_->Synchronize(); }), nullptr);
  EXPECT_EQ(recorder->Record([&] { const DeviceBuffer buffer(Memory::kCuda, 100); }), nullptr);
  EXPECT_EQ(recorder->Record([] { throw Error(ErrorCategory::kInternal, "a kernel failed"); }), nullptr);
  const DeviceBuffer buffer(Memory::kCuda, 100);  // all is as before
  device_->Synchronize();
}

TEST_F(CudaDeviceTest, ItsClockTimesWorkWithoutWhatCameBefore) {
  auto* timer = dynamic_cast<TimesWork*>(device_);
  ASSERT_NE(timer, nullptr);
  constexpr size_t kSize = size_t{1} << 20;
  const DeviceBuffer a(Memory::kCuda, kSize), b(Memory::kCuda, kSize);
  const auto copy = [&](int count) {
    return [&, count] {
      for (int i = 0; i < count; ++i) device_->CopyWithin(b.address(), a.address(), kSize);
    };
  };
  if (std::getenv("COLLAGE_TEST_GPU") == nullptr) {  // the stand-in's clock can be set
    setenv("STANDIN_CUDA_WORK_US", "8", 1);
    EXPECT_NEAR(timer->SecondsOfWork(copy(5), copy(3)), 24e-6, 1e-9);
    EXPECT_NEAR(timer->SecondsOfWork([] {}, [] {}), 0, 1e-9);
    const auto recorded = dynamic_cast<RecordsWork*>(device_)->Record(copy(4));
    EXPECT_NEAR(timer->SecondsOfWork([] {}, [&] { recorded->Run(); }), 32e-6, 1e-9);
    unsetenv("STANDIN_CUDA_WORK_US");
  }
  EXPECT_GT(timer->SecondsOfWork(copy(1), copy(20)), 0);
  EXPECT_GT(timer->CacheBytes(), 0U);
}

TEST_F(CudaDeviceTest, ItSaysWhetherItThrottles) {
  auto* timer = dynamic_cast<TimesWork*>(device_);
  ASSERT_NE(timer, nullptr);
  const double now = timer->Slowdown();
  EXPECT_GE(now, 1);
  EXPECT_LT(now, 100);
  if (std::getenv("COLLAGE_TEST_GPU") != nullptr) return;  // the stand-in's clocks can be set
  EXPECT_EQ(now, 1);
  setenv("STANDIN_NVML_MHZ", "990", 1);
  EXPECT_EQ(timer->Slowdown(), 1) << "a clock may be low because the GPU is idle, or was told so";
  for (const char* reason : {"0x4", "0x8", "0x20", "0x40", "0x80"}) {
    setenv("STANDIN_NVML_REASONS", reason, 1);
    EXPECT_EQ(timer->Slowdown(), 2) << reason;
  }
  for (const char* reason : {"0x1", "0x2", "0x10", "0x100"}) {
    setenv("STANDIN_NVML_REASONS", reason, 1);
    EXPECT_EQ(timer->Slowdown(), 1) << reason;
  }
  unsetenv("STANDIN_NVML_MHZ");
  unsetenv("STANDIN_NVML_REASONS");
}

TEST_F(CudaDeviceTest, AnyThreadMayCall) {
  const Bytes in = Numbers(100'000, 5);
  Bytes out(in.size());
  const DeviceBuffer buffer(Memory::kCuda, in.size());
  std::thread([&] { device_->CopyIn(buffer.address(), in.data(), in.size()); }).join();
  std::thread([&] { device_->CopyOut(out.data(), buffer.address(), out.size()); }).join();
  EXPECT_EQ(in, out);
}

TEST_F(CudaDeviceTest, AFullGpuIsAnError) {
  try {
    const DeviceBuffer buffer(Memory::kCuda, size_t{1} << 45);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kResource);
    EXPECT_NE(error.message().find("the GPU has no room for"), std::string::npos) << error.message();
  }
}

TEST_F(CudaDeviceTest, AForkedProcessIsToldThatItCannotUseTheGpu) {
  const pid_t child = fork();
  if (child == 0) {
    std::string reason;
    for (const KnownDevice& device : DescribeDevices()) {
      if (device.name == "cuda") reason = device.reason;
    }
    _exit(reason.find("do not survive a fork") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace collage
