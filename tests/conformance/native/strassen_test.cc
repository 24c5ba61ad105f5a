// native_strassen_test.cc: products of matrices by Strassen's algorithm: which ones are, that they agree whatever their
// sizes, epilogues and threads, and how far their errors go.
#include <fmt/format.h>

#include <cmath>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/thread_pool.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using V = std::vector<int64_t>;

constexpr const char* kStrassen = "algorithm=strassen";
constexpr const char* kDirect = "algorithm=direct";

const Toolchain& Native() { return BuiltinToolchain("native"); }

std::unique_ptr<const Toolchain> Exact() { return Native().WithOptions({{"accuracy", "exact"}, {"winograd_tile", 0}}); }

Expr Dense(const Expr& x, int64_t depth, int64_t columns) {
  return MakeCall("nn.dense", {x, RandomConstant({columns, depth}, 4, -0.3, 0.3)});
}

Function Product(int64_t rows, int64_t depth, int64_t columns) {
  const Var x = Input("x", {rows, depth});
  return MakeFunction({x}, Dense(x, depth, columns));
}

/// Whether weights are packed as seven matrices.
bool IsInSevenProducts(const Toolchain& toolchain, const Function& function, const std::string& schedule = "",
                       int threads = 1) {
  InferType(function);
  const size_t inputs = function->params().size();
  const auto lowered = toolchain.RelayToTIR({function, PlainLayouts(inputs, 1), threads, schedule});
  EXPECT_TRUE(lowered.ok()) << lowered.reason().text;
  if (!lowered.ok()) return false;
  return std::any_of(lowered->constants.begin(), lowered->constants.end(),
                     [](const Tensor& constant) { return constant.rank() == 4 && constant.shape()[1] == 7; });
}

void ExpectSevenProductsAgree(const Function& function, Options options = {}) {
  if (options.schedule.empty()) options.schedule = kStrassen;
  EXPECT_TRUE(IsInSevenProducts(Native(), function, options.schedule, options.num_threads));
  ExpectAgrees(Native(), function, options);
}

TEST(NativeStrassenTest, LargeProductsAreComputedSo) {
  EXPECT_TRUE(IsInSevenProducts(Native(), Product(128, 768, 768)));
  EXPECT_TRUE(IsInSevenProducts(Native(), Product(197, 768, 3072)));
  EXPECT_FALSE(IsInSevenProducts(Native(), Product(128, 768, 768), kDirect));
  EXPECT_FALSE(IsInSevenProducts(*Exact(), Product(128, 768, 768)));
  EXPECT_FALSE(IsInSevenProducts(*Exact(), Product(128, 768, 768), kStrassen));
  EXPECT_FALSE(IsInSevenProducts(Native(), Product(1, 768, 768))) << "nothing to halve";
  EXPECT_FALSE(IsInSevenProducts(Native(), Product(128, 32, 256))) << "more to add than to spare";
  EXPECT_FALSE(IsInSevenProducts(Native(), Product(128, 767, 768))) << "odd";
  const Var x = Input("x", {128, 768}), y = Input("y", {768, 768});
  EXPECT_FALSE(IsInSevenProducts(Native(), MakeFunction({x, y}, MakeCall("nn.dense", {x, y})))) << "no constant";
}

TEST(NativeStrassenTest, SchedulesHaveBothAlgorithms) {
  const Function function = Product(128, 768, 768);
  InferType(function);
  const auto listed = [&](const Toolchain& toolchain, const std::string& from) {
    const auto schedules = toolchain.Schedules({function, PlainLayouts(1, 1), 1, from});
    EXPECT_TRUE(schedules.ok());
    std::string all;
    for (const std::string& schedule : *schedules) all += schedule + "\n";
    return all;
  };
  EXPECT_NE(listed(Native(), "").find("algorithm=direct\n"), std::string::npos);
  EXPECT_NE(listed(Native(), "").find("algorithm=strassen,rows="), std::string::npos) << "other tiles of the same";
  EXPECT_NE(listed(Native(), kDirect).find("algorithm=strassen\n"), std::string::npos);
  EXPECT_EQ(listed(*Exact(), "").find("strassen"), std::string::npos);
}

TEST(NativeStrassenTest, AgreesForAllSizes) {
  for (const int64_t rows : {2, 3, 5, 64, 99, 197, 255, 256, 257, 300, 513, 700}) {
    for (const int64_t depth : {2, 34, 130}) {
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} rows, {} deep, {} threads", rows, depth, threads));
        // Panels of a vector, so that few columns are enough.
        ExpectSevenProductsAgree(Product(rows, depth, 64),
                                 {.num_threads = threads, .schedule = "algorithm=strassen,width=1,parallel=yes"});
      }
    }
  }
}

TEST(NativeStrassenTest, AgreesInOtherTiles) {
  for (const char* tiles : {"rows=1", "rows=3,width=2", "rows=64,width=1", "lanes=8", "lanes=4,width=3", "unroll=4"}) {
    SCOPED_TRACE(tiles);
    ExpectSevenProductsAgree(Product(50, 96, 384), {.schedule = fmt::format("algorithm=strassen,{}", tiles)});
  }
}

TEST(NativeStrassenTest, WhatIsAroundIsComputedWithIt) {
  const Var x = Input("x", {1, 75, 96}), residual = Input("residual", {1, 75, 256});
  const Expr rows = MakeCall("reshape", {MakeCall("nn.relu", {x})}, {{"newshape", V{75, 96}}});
  const Expr dense = Plus(Dense(rows, 96, 256), RandomConstant({256}, 5));
  const Expr shaped = MakeCall("reshape", {Mul(dense, MakeCall("sigmoid", {dense}))}, {{"newshape", V{1, 75, 256}}});
  ExpectSevenProductsAgree(MakeFunction({x, residual}, Plus(shaped, residual)), {.num_threads = 2});
  const Var batch = Input("x", {3, 25, 96});
  const Constant right = RandomConstant({1, 96, 256}, 6);
  ExpectSevenProductsAgree(
      MakeFunction({batch}, MakeCall("nn.batch_matmul", {batch, right}, {{"transpose_b", false}})));
}

TEST(NativeStrassenTest, ConvolutionsOfOneTap) {
  const Layout last = Layout::kChannelsLast;
  for (const Shape& pixels : {Shape{7, 7}, {14, 20}, {1, 3}, {33, 31}}) {
    for (const bool has_bias : {false, true}) {
      SCOPED_TRACE(fmt::format("{} pixels, with a bias {}", ToString(pixels), has_bias));
      const Var x = Input("x", {2, 64, pixels[0], pixels[1]});
      const Var other = Input("other", {2, 256, pixels[0], pixels[1]});
      Expr result = MakeCall("nn.conv2d", {x, RandomConstant({256, 64, 1, 1}, 3)});
      if (has_bias) result = Plus(result, RandomConstant({256, 1, 1}, 5));
      const Function function = MakeFunction({x, other}, MakeCall("nn.relu", {Plus(result, other)}));
      for (const int threads : {1, 2}) {
        ExpectSevenProductsAgree(function, {.layouts = {{last, last}, {last}}, .num_threads = threads});
      }
      ExpectSevenProductsAgree(function);
    }
  }
  const Var x = Input("x", {1, 64, 8, 8});
  const Expr strided = MakeCall("nn.conv2d", {x, RandomConstant({256, 64, 1, 1}, 3)}, {{"strides", V{2, 2}}});
  EXPECT_FALSE(IsInSevenProducts(Native(), MakeFunction({x}, strided), kStrassen));
}

/// Root mean square of what is off from sums in double, relative to that of the results.
double ErrorOf(const std::string& schedule, int64_t rows, int64_t depth, int64_t columns) {
  const Tensor a = RandomTensor({rows, depth}, kFloat32, -1, 1, 1);
  const Tensor b = RandomTensor({columns, depth}, kFloat32, -1, 1, 2);
  const Var x = Input("x", {rows, depth});
  const Function function = MakeFunction({x}, MakeCall("nn.dense", {x, MakeConstant(b)}));
  InferType(function);
  SetNumThreads(1);
  const Result<CompiledPartition> compiled = Native().RelayToRuntime({function, PlainLayouts(1, 1), 1, schedule});
  const auto kernel = GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
  const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes)}, kUInt8);
  const Tensor result = Tensor::Zeros({rows, columns}, kFloat32);
  void* from = a.raw();
  void* to = result.raw();
  kernel->Bind({&from, 1}, {&to, 1}, workspace.raw());
  kernel->Run();
  double squares = 0, errors = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += static_cast<double>(a.data<float>()[i * depth + k]) * b.data<float>()[j * depth + k];
      }
      squares += sum * sum;
      errors += std::pow(result.data<float>()[i * columns + j] - sum, 2);
    }
  }
  return std::sqrt(errors / squares);
}

TEST(NativeStrassenTest, ErrorsStayWithinTheirBound) {
  for (const int64_t depth : {128, 768}) {
    const double direct = ErrorOf(kDirect, 32, depth, 256);
    const double fast = ErrorOf(kStrassen, 32, depth, 256);
    EXPECT_LT(fast, 4.5 * direct) << depth;
    EXPECT_GT(fast, direct) << depth << ": what is declared as less exact is not";
  }
}

}  // namespace
}  // namespace collage
