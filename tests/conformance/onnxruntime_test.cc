// onnxruntime_test.cc: ONNX Runtime against the reference: partitions of several operators, threads, weights, every
// operator's examples, and what it declines.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "collage/target/bundled_files.h"
#include "collage/target/symbolic_sizes.h"
#include "conformance/conformance.h"

namespace collage {
namespace {

using conformance::BuiltinToolchain;
using conformance::ExampleFunction;
using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;
using V = std::vector<int64_t>;

class OnnxRuntime : public testing::Test {
 protected:
  void SetUp() override {
    const Availability here = BuiltinToolchain("onnxruntime").Probe();
    if (!here.available) GTEST_SKIP() << here.reason;
  }

  /// Why the call that `body` is, on an argument `x`, is not taken; "" if it is.
  std::string WhyNot(const Var& x, const Expr& body) const {
    InferType(MakeFunction({x}, body));
    const Result<void> answer = toolchain_.SupportsCall(*As<CallNode>(body));
    if (answer.ok()) return "";
    EXPECT_EQ(answer.reason().origin, "onnxruntime");
    return answer.reason().text;
  }

  const Toolchain& toolchain_ = BuiltinToolchain("onnxruntime");
};

Function ConvBlock() {
  const Var x = Input("x", {1, 16, 14, 13});
  Expr y = MakeCall("nn.conv2d", {x, RandomConstant({16, 16, 3, 3}, 1, -0.2, 0.2)}, {{"padding", V{1, 1}}});
  y = MakeCall("add", {y, RandomConstant({16, 1, 1}, 2)});
  y = MakeCall("nn.relu", {MakeCall("add", {y, x})});
  y = MakeCall("nn.max_pool2d", {y}, {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}});
  return MakeFunction({x}, y);
}

TEST_F(OnnxRuntime, RunsAConvolutionBlock) {
  for (const int threads : {1, 2}) ExpectAgrees(toolchain_, ConvBlock(), {.num_threads = threads});
}

TEST_F(OnnxRuntime, KernelsOfSeveralThreadsOfACallerDoNotMeet) {
  conformance::ExpectThreadsAgree(toolchain_, ConvBlock());
}

TEST_F(OnnxRuntime, RunsAttention) {
  const Shape heads{2, 3, 8, 4};
  const Var q = Input("q", heads), k = Input("k", heads), v = Input("v", heads);
  const auto flat = [](const Expr& e) { return MakeCall("reshape", {e}, {{"newshape", V{6, 8, 4}}}); };
  Expr scores = MakeCall("nn.batch_matmul", {flat(q), flat(k)}, {{"transpose_b", true}});
  scores = MakeCall("nn.softmax", {MakeCall("multiply", {scores, MakeScalar(0.5, kFloat32)})});
  Expr y = MakeCall("nn.batch_matmul", {scores, flat(v)});
  y = MakeCall("reshape", {y}, {{"newshape", V{2, 3, 8, 4}}});
  ExpectAgrees(toolchain_, MakeFunction({q, k, v}, MakeCall("transpose", {y}, {{"axes", V{0, 2, 1, 3}}})));
}

TEST_F(OnnxRuntime, ReturnsSeveralResults) {
  const Var x = Input("x", {3, 6});
  const Expr parts = MakeCall("split", {x}, {{"indices_or_sections", V{2}}, {"axis", 1}});
  const Expr y = MakeTuple({MakeTupleGetItem(parts, 1), MakeCall("tanh", {MakeTupleGetItem(parts, 0)}), x});
  ExpectAgrees(toolchain_, MakeFunction({x}, y));
}

TEST_F(OnnxRuntime, MultipliesBytesExactly) {
  const Var x = Input("x", {4, 64}, kUInt8);
  const auto scale = [](double value) { return MakeScalar(value, kFloat32); };
  const Expr zero = MakeScalar(0, kInt32);
  const Expr data = MakeCall("qnn.dequantize", {x, scale(0.02), zero});
  const Expr weight = MakeConstant(conformance::RandomTensor({8, 64}, kInt8, -127, 127, 5));
  const Expr product = MakeCall("nn.dense", {data, MakeCall("qnn.dequantize", {weight, scale(0.01), zero})});
  const Function function =
      MakeFunction({x}, MakeCall("qnn.quantize", {product, scale(0.5), zero}, {{"out_dtype", "int8"}}));
  ExpectAgrees(toolchain_, function, {.all_bytes = true, .share_one_off = 0.01});
}

// Each operator that is taken, at the types and shapes of its examples.
TEST_F(OnnxRuntime, Operators) {
  size_t num_taken = 0;
  for (const Op& op : AllOps()) {
    for (const OpExample& example : op->def().examples) {
      const Function function = ExampleFunction(op->def(), example);
      InferType(function);
      if (!toolchain_.SupportsCall(static_cast<const CallNode&>(*function->body())).ok()) continue;
      SCOPED_TRACE(op->name() + " " + PrintExpr(function));
      ++num_taken;
      try {
        ExpectAgrees(toolchain_, function, {.low = example.low, .high = example.high});
      } catch (const Error& error) {
        ADD_FAILURE() << error.Format();
      }
    }
  }
  EXPECT_GT(num_taken, 100U);
}

TEST_F(OnnxRuntime, DeclinesWithReasons) {
  const Var doubles = Input("x", {3, 6}, kFloat64);
  EXPECT_EQ(WhyNot(doubles, MakeCall("tanh", {doubles})), "its kernels are not for float64");
  const Var integers = Input("x", {3, 6}, kInt64);
  EXPECT_EQ(WhyNot(integers, MakeCall("nn.relu", {integers})), "it has no kernel of 'nn.relu' for int64");
  EXPECT_EQ(WhyNot(integers, MakeCall("cast", {integers}, {{"dtype", "float16"}})), "its kernels are not for float16");
  const Var x = Input("x", {3, 6});
  EXPECT_EQ(WhyNot(x, MakeCall("cumprod", {x}, {{"axis", 1}})), "many releases have no kernel of CumProd");
  EXPECT_EQ(WhyNot(x, MakeCall("nn.relu", {x})), "");
  const Function inner = MakeFunction({x}, MakeCall("nn.relu", {x}));
  const Var y = Input("y", {3, 6});
  EXPECT_EQ(WhyNot(y, MakeCall(inner, {y})), "calls no operator");
}

TEST_F(OnnxRuntime, WhatCannotBeExportedIsARefusal) {
  const Var x = Input("x", {3, 6}, kInt32);
  const Function function = MakeFunction({x}, MakeCall("left_shift", {x, x}));
  InferType(function);
  const Result<CompiledPartition> answer = toolchain_.RelayToRuntime({function, PlainLayouts(1, 1)});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.reason().origin, "onnxruntime");
  EXPECT_NE(answer.reason().text.find("left_shift"), std::string::npos) << answer.reason().text;
}

TEST_F(OnnxRuntime, RefusesDamagedBlobs) {
  const Function function = ConvBlock();
  InferType(function);
  const Result<CompiledPartition> compiled = toolchain_.RelayToRuntime({function, PlainLayouts(1, 1)});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const auto load = [](std::span<const std::byte> blob) { GetKernelLoader("onnxruntime").Load({blob, {}, 1}); };
  load(compiled->blob);
  EXPECT_THROW(load(std::span(compiled->blob).first(40)), Error);
  EXPECT_THROW(load(std::span(compiled->blob).first(compiled->blob.size() / 2)), Error);
}

TEST_F(OnnxRuntime, BundlesTakeItsLibrary) {
  const std::vector<BundledFile> files = BundledFilesOf(toolchain_);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_TRUE(files[0].name.starts_with("libonnxruntime.so")) << files[0].name;
  EXPECT_TRUE(CompilesSymbolicSizes(toolchain_));
}

}  // namespace
}  // namespace collage
