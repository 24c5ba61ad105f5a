// Memories by type of device and scope, layouts in them, and the way of a value from one to another.
#include "collage/runtime/device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "collage/runtime/layout.h"
#include "collage/support/error.h"

namespace collage {
namespace {

TEST(DeviceTest, MemoriesGoByTypeAndScope) {
  EXPECT_EQ(MemoryOf(1), Memory::kHost);
  EXPECT_EQ(MemoryOf(1, "anything"), Memory::kHost) << "the processor has one memory";
  EXPECT_EQ(MemoryOf(12), Memory::kExtDev);
  EXPECT_EQ(MemoryOf(12, "global"), Memory::kExtDev);
  EXPECT_EQ(MemoryOf(12, "global.vtcm"), Memory::kExtDevVtcm);
  EXPECT_EQ(MemoryOf(12, "shared"), std::nullopt);
  EXPECT_EQ(MemoryOf(99), std::nullopt);
  for (const Memory memory : AllMemories()) EXPECT_GE(DeviceTypeOf(memory), 1);
  EXPECT_EQ(DeviceName(1), "cpu");
  EXPECT_EQ(DeviceName(12), "ext_dev");
  EXPECT_EQ(DeviceName(99), "device 99");
}

TEST(DeviceTest, LayoutsAreOfAMemory) {
  for (const Memory memory : AllMemories()) {
    for (const Layout layout : AllLayouts()) {
      const Layout there = In(memory, layout);
      EXPECT_EQ(MemoryOf(there), memory);
      EXPECT_EQ(In(Memory::kHost, there), layout);
      EXPECT_TRUE(IsLayout(static_cast<int64_t>(there)));
      EXPECT_EQ(LayoutNamed(ToString(there)), there);
      EXPECT_EQ(IsChannelsLast(there), IsChannelsLast(layout));
      EXPECT_EQ(MemoryOf(Keeping(there, kBFloat16)), memory);
    }
  }
  EXPECT_EQ(ToString(In(Memory::kExtDevVtcm, Layout::kChannelsLast)), "channels_last@ext_dev:global.vtcm");
  EXPECT_EQ(LayoutNamed("plain@nowhere"), std::nullopt);
  EXPECT_FALSE(IsLayout(6));
  EXPECT_FALSE(IsLayout(-1));
  EXPECT_FALSE(IsLayout(static_cast<int64_t>(AllMemories().size()) * 8));
}

TEST(DeviceTest, OrdersChangeOnTheHostOnly) {
  const auto there = [](Layout layout) { return In(Memory::kExtDev, layout); };
  const Layout plain = Layout::kPlain, last = Layout::kChannelsLast;
  using Steps = std::vector<Layout>;
  EXPECT_EQ(StepsBetween(plain, plain), Steps{});
  EXPECT_EQ(StepsBetween(there(last), there(last)), Steps{});
  EXPECT_EQ(StepsBetween(plain, last), Steps{last});
  EXPECT_EQ(StepsBetween(plain, there(plain)), Steps{there(plain)});
  EXPECT_EQ(StepsBetween(plain, there(last)), (Steps{last, there(last)}));
  EXPECT_EQ(StepsBetween(there(last), plain), (Steps{last, plain}));
  EXPECT_EQ(StepsBetween(there(last), there(plain)), (Steps{last, plain, there(plain)}));
  EXPECT_EQ(StepsBetween(there(plain), In(Memory::kExtDevVtcm, plain)), Steps{In(Memory::kExtDevVtcm, plain)});
  EXPECT_EQ(StepsBetween(there(plain), In(Memory::kCuda, plain)), (Steps{plain, In(Memory::kCuda, plain)}));
}

TEST(DeviceTest, OneThatIsNotHereIsNamed) {
  try {
    GetDevice(Memory::kOpencl);
    FAIL() << "there is no such device here";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnavailable);
    EXPECT_NE(error.message().find("libcollage_device_opencl.so"), std::string::npos) << error.message();
  }
}

/// Keeps a count of what is allocated.
class Counting : public Device {
 public:
  void* Allocate(size_t bytes, Memory) override {
    ++num_allocated;
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void Free(void* address) noexcept override {
    --num_allocated;
    std::free(address);
  }
  void CopyIn(void* target, const void* source, size_t bytes) override { std::memcpy(target, source, bytes); }
  void CopyOut(void* target, const void* source, size_t bytes) override { std::memcpy(target, source, bytes); }
  void CopyWithin(void* target, const void* source, size_t bytes) override { std::memcpy(target, source, bytes); }
  void Synchronize() override {}
  static inline int num_allocated = 0;
};

TEST(DeviceTest, BuffersAreFreedOnceAndValuesArriveAsTheyWere) {
  AddDevice(DeviceTypeOf(Memory::kCuda), std::make_unique<Counting>());
  {
    const DeviceBuffer buffer(Memory::kCuda, 24);
    const DeviceBuffer copy = buffer;
    const DeviceBuffer empty(Memory::kCuda, 0);
    EXPECT_NE(empty.address(), nullptr);
    EXPECT_EQ(Counting::num_allocated, 2);
    EXPECT_EQ(copy.address(), buffer.address());
    const std::vector<float> sent{1, 2, 3, 4, 5, 6};
    std::vector<float> back(6);
    const Shape shape{2, 3};
    const Layout there = In(Memory::kCuda, Layout::kPlain);
    ConvertLayout(sent.data(), Layout::kPlain, buffer.address(), there, shape, sizeof(float));
    ConvertLayout(buffer.address(), there, back.data(), Layout::kPlain, shape, sizeof(float));
    EXPECT_EQ(back, sent);
  }
  EXPECT_EQ(Counting::num_allocated, 0);
}

}  // namespace
}  // namespace collage
