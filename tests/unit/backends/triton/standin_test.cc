// Mistakes of kernels in Triton's intermediate representation, which the stand-in for GPUs finds: texts as Triton
// prints them, with one mistake each.
#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/triton/kernel.h"
#include "standins/triton/open.h"
#include "support/numbers.h"

namespace collage {
namespace {

using testing::HasSubstr;

constexpr uint64_t kFirst = 4096;  ///< the address of the first buffer
constexpr uint64_t kApart = 4096;  ///< from one to the next

/// Buffers of so many elements of float32 at addresses of a device.
class Device {
 public:
  explicit Device(std::vector<std::vector<float>> buffers) : buffers_(std::move(buffers)) {}

  /// Runs the kernel of `text` and returns what was wrong.
  std::string Run(const std::string& text, standin::Grid grid, uint64_t hidden = 0) {
    const std::string image = triton::kEmulatedText + text;
    const auto kernels = standin::OpenTriton(image.c_str());
    if (kernels.size() != 1 || kernels[0]->name != triton::kKernelName) return "no kernel";
    standin::Parameters parameters;
    for (size_t i = 0; i < kernels[0]->parameter_sizes.size(); ++i) {
      const uint64_t address = i < buffers_.size() ? kFirst + i * kApart : hidden;
      std::vector<std::byte>& bytes = parameters.emplace_back(sizeof address);
      std::memcpy(bytes.data(), &address, sizeof address);
    }
    const auto find = [this](uint64_t address, size_t bytes) -> std::byte* {
      const size_t number = address / kApart - 1, offset = address % kApart;
      if (address < kFirst || number >= buffers_.size()) return nullptr;
      if (offset + bytes > buffers_[number].size() * sizeof(float)) return nullptr;
      return reinterpret_cast<std::byte*>(buffers_[number].data()) + offset;
    };
    return kernels[0]->whole(grid, parameters, find);
  }

  const std::vector<float>& operator[](size_t i) const { return buffers_[i]; }

 private:
  std::vector<std::vector<float>> buffers_;
};

/// Programs of four elements each; `limit` is where the mask ends, `size` how far programs are apart.
std::string Doubling(const std::string& limit, const std::string& size = "4") {
  return R"(module {
  tt.func public @collage_kernel(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %cst = arith.constant dense<2.000000e+00> : tensor<4xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<4xf32>
    %cst_1 = arith.constant dense<)" +
         limit + R"(> : tensor<4xi32>
    %c4_i32 = arith.constant )" +
         size + R"( : i32
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c4_i32 : i32
    %2 = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %3 = tt.splat %1 : i32 -> tensor<4xi32>
    %4 = arith.addi %3, %2 : tensor<4xi32>
    %5 = arith.cmpi slt, %4, %cst_1 : tensor<4xi32>
    %6 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %7 = tt.addptr %6, %4 : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %8 = tt.load %7, %5, %cst_0 : tensor<4x!tt.ptr<f32>>
    %9 = arith.mulf %8, %cst : tensor<4xf32>
    %10 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %11 = tt.addptr %10, %4 : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    tt.store %11, %9, %5 : tensor<4x!tt.ptr<f32>>
    tt.return
  }
}
)";
}

TEST(TritonStandInTest, ProgramsComputeTheirPart) {
  Device device({{1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0}});
  EXPECT_EQ(device.Run(Doubling("6"), {.blocks = 2, .threads = 128}), "");
  EXPECT_THAT(device[1], testing::ElementsAre(2, 4, 6, 8, 10, 12));
}

TEST(TritonStandInTest, AccessesOutsideOfMemoryAreFound) {
  Device device({{1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0}});
  EXPECT_THAT(device.Run(Doubling("7"), {.blocks = 2}),
              HasSubstr("reads element 2 of 4 outside of the device's memory"));
  Device with_short_result({{1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0}});
  EXPECT_THAT(with_short_result.Run(Doubling("6"), {.blocks = 2}), HasSubstr("writes element 1 of 4 outside"));
}

TEST(TritonStandInTest, ElementsThatTwoProgramsWriteAreFound) {
  Device device({{1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0}});
  EXPECT_THAT(device.Run(Doubling("6", "3"), {.blocks = 2}),
              HasSubstr("writes an element that another program writes"));
}

TEST(TritonStandInTest, LaunchesAreChecked) {
  Device device({{1, 2, 3, 4}, {0, 0, 0, 0}});
  EXPECT_THAT(device.Run(Doubling("4"), {.blocks = 1, .threads = 96}), HasSubstr("launched as no kernel of Triton"));
  EXPECT_THAT(device.Run(Doubling("4"), {.blocks = 1}, /*hidden=*/64), HasSubstr("behind those of its arguments"));
  std::string text = Doubling("4");
  text.replace(text.find("divisibility = 16"), 17, "divisibility = 8192");
  EXPECT_THAT(device.Run(text, {.blocks = 1}), HasSubstr("argument 0 is no multiple"));
}

TEST(TritonStandInTest, WhatIsNotKnownIsNamed) {
  Device device({{1, 2, 3, 4}, {0, 0, 0, 0}});
  std::string text = Doubling("4");
  text.replace(text.find("arith.mulf"), 10, "math.atan2");
  EXPECT_THAT(device.Run(text, {.blocks = 1}), HasSubstr("there is no operation 'math.atan2' here"));
}

/// [2, 2] x [2, 2] in a loop of two steps, and the largest of each row.
std::string Product(const std::string& precision) {
  return R"(module {
  tt.func public @collage_kernel(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>) attributes {noinline = false} {
    %cst = arith.constant dense<0.000000e+00> : tensor<2x2xf32>
    %c2_i32 = arith.constant 2 : i32
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_0 = arith.constant dense<2> : tensor<2x1xi32>
    %0 = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
    %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
    %2 = tt.expand_dims %0 {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
    %3 = arith.muli %1, %cst_0 : tensor<2x1xi32>
    %4 = tt.broadcast %3 : tensor<2x1xi32> -> tensor<2x2xi32>
    %5 = tt.broadcast %2 : tensor<1x2xi32> -> tensor<2x2xi32>
    %6 = arith.addi %4, %5 : tensor<2x2xi32>
    %7 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<2x2x!tt.ptr<f32>>
    %8 = tt.addptr %7, %6 : tensor<2x2x!tt.ptr<f32>>, tensor<2x2xi32>
    %9 = tt.load %8 : tensor<2x2x!tt.ptr<f32>>
    %10:2 = scf.for %arg2 = %c0_i32 to %c2_i32 step %c1_i32 iter_args(%arg3 = %cst, %arg4 = %9) -> (tensor<2x2xf32>, tensor<2x2xf32>)  : i32 {
      %14 = tt.dot %9, %arg4, %arg3)" +
         precision + R"( : tensor<2x2xf32> * tensor<2x2xf32> -> tensor<2x2xf32>
      scf.yield %14, %arg4 : tensor<2x2xf32>, tensor<2x2xf32>
    }
    %11 = "tt.reduce"(%10#0) <{axis = 1 : i32}> ({
    ^bb0(%arg2: f32, %arg3: f32):
      %15 = arith.maxnumf %arg2, %arg3 : f32
      tt.reduce.return %15 : f32
    }) : (tensor<2x2xf32>) -> tensor<2xf32>
    %12 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
    %13 = tt.addptr %12, %0 : tensor<2x!tt.ptr<f32>>, tensor<2xi32>
    tt.store %13, %11 : tensor<2x!tt.ptr<f32>>
    tt.return
  }
}
)";
}

TEST(TritonStandInTest, LoopsProductsAndReductionsAreComputed) {
  Device device({{1, 2, 3, 4}, {0, 0}});
  EXPECT_EQ(device.Run(Product(""), {.blocks = 1}), "");
  // Twice the product [[7, 10], [15, 22]].
  EXPECT_THAT(device[1], testing::ElementsAre(20, 44));
}

TEST(TritonStandInTest, FactorsAreRoundedAsTheProductSays) {
  const float fine = 1 + 0x1p-20F;
  const auto largest = [&](const std::string& precision) {
    Device device({{fine, 0, 0, 0}, {0, 0}});
    EXPECT_EQ(device.Run(Product(precision), {.blocks = 1}), "");
    return device[1][0];
  };
  EXPECT_EQ(largest(", inputPrecision = tf32"), 2);
  EXPECT_NEAR(largest(", inputPrecision = tf32x3"), 2 * fine * fine, 1e-7);
  EXPECT_NEAR(largest(""), 2 * fine * fine, 1e-7);
}

}  // namespace
}  // namespace collage
