#include "backends/cuda_driver/gpu_kernel.h"

#include <gtest/gtest.h>

#include <string_view>

#include "collage/support/error.h"

namespace collage::cuda_driver {
namespace {

std::vector<std::byte> Bytes(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

GpuKernel Example() {
  GpuKernel kernel;
  kernel.architecture = "sm_90";
  kernel.functions = {{"stage0_kernel", 0}, {"stage1_kernel", 98304, 8, true}};
  kernel.launches = {{.function = 0, .count = 7},
                     {.function = 1, .count = 3, .grain = 3, .counter_slot = 2, .counter_offset = 64, .counter = 5}};
  kernel.images = {{"sm_90", Bytes("machine code")}, {"ptx", Bytes(std::string_view(".version 8.0\0", 13))}};
  kernel.num_addresses = 4;
  kernel.has_workspace = true;
  kernel.scratch_offset = 128;
  kernel.scratch_warps = 1024;
  kernel.scratch_bytes = 64;
  return kernel;
}

TEST(GpuKernelTest, IsReadBack) { EXPECT_EQ(GpuKernelFrom(ToBlob(Example())), Example()); }

TEST(GpuKernelTest, WhatIsCutOrLongerIsRefused) {
  const std::vector<std::byte> blob = ToBlob(Example());
  for (size_t size = 0; size < blob.size(); ++size) {
    EXPECT_THROW(GpuKernelFrom(std::span(blob).first(size)), Error) << size;
  }
  std::vector<std::byte> longer = blob;
  longer.push_back(std::byte{0});
  EXPECT_THROW(GpuKernelFrom(longer), Error);
}

TEST(GpuKernelTest, TextThatDoesNotEndIsRefused) {
  GpuKernel kernel = Example();
  kernel.images[1].bytes.pop_back();
  EXPECT_THROW(GpuKernelFrom(ToBlob(kernel)), Error);
}

TEST(GpuKernelTest, LaunchesOfWhatThereIsNotAreRefused) {
  const auto refuses = [](const auto& change) {
    GpuKernel kernel = Example();
    change(kernel);
    EXPECT_THROW(GpuKernelFrom(ToBlob(kernel)), Error);
  };
  refuses([](GpuKernel& kernel) { kernel.launches[0].function = 2; });
  refuses([](GpuKernel& kernel) { kernel.launches[0].function = -1; });
  refuses([](GpuKernel& kernel) { kernel.launches[0].count = 0; });
  refuses([](GpuKernel& kernel) { kernel.functions[0].warps = 0; });
  refuses([](GpuKernel& kernel) { kernel.functions[1].warps = 33; });
  refuses([](GpuKernel& kernel) { kernel.launches[0].grain = 0; });
  refuses([](GpuKernel& kernel) { kernel.launches[1].counter_slot = 4; });
  refuses([](GpuKernel& kernel) { kernel.launches[1].counter_offset = -8; });
  refuses([](GpuKernel& kernel) { kernel.num_addresses = 100'000; });
  refuses([](GpuKernel& kernel) { kernel.scratch_warps = -1; });
}

}  // namespace
}  // namespace collage::cuda_driver
