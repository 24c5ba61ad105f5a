// native_float16_test.cc: native kernels that are told to keep values between partitions as float16: arithmetic stays
// that of float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "conformance/narrow_values.h"
#include "cost/measure/measure.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using conformance::AllKeptAs;
using conformance::BuiltinToolchain;
using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;
using V = std::vector<int64_t>;

// Of the largest result: data and results are rounded to 11 bits, 2^-12 of themselves at most. In bfloat16 it would be
// eight times as much.
constexpr double kTolerance = 1e-3;

class NativeKeepsFloat16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!standard_.Probe().available) GTEST_SKIP() << standard_.Probe().reason;
    native_ = ToolchainConfiguration(standard_).With("inference_precision", "f16").Make();
  }

  const Toolchain& standard_ = BuiltinToolchain("native");
  std::unique_ptr<const Toolchain> native_;
};

TEST_F(NativeKeepsFloat16, TakesAndGivesValuesKeptSo) {
  const Var x = Input("x", {2, 24, 15, 14});
  for (const Expr& result : conformance::OneOfEachKind(x)) {
    const Function function = MakeFunction({x}, result);
    SCOPED_TRACE(As<CallNode>(result)->op()->name);
    const BoundaryLayouts layouts = AllKeptAs(kFloat16, function);
    for (const int threads : {1, 2}) {
      ExpectAgrees(*native_, function, {.layouts = layouts, .num_threads = threads, .tolerance = kTolerance});
    }
  }
  // One of several values, of several results.
  const Var y = Input("y", {2, 24, 15, 14});
  const Expr sum = MakeCall("add", {x, y});
  const Function several = MakeFunction({x, y}, MakeTuple({sum, MakeCall("nn.relu", {sum})}));
  for (const Layout input : {Layout::kPlain, Layout::kChannelsLastFloat16, Layout::kPlainFloat16}) {
    for (const Layout output : {Layout::kPlain, Layout::kChannelsLastFloat16, Layout::kPlainFloat16}) {
      if (!NarrowType(input) && !NarrowType(output)) continue;  // left to the standard
      ExpectAgrees(
          *native_, several,
          {.layouts = {{input, Layout::kChannelsLast}, {output, Layout::kChannelsLast}}, .tolerance = kTolerance});
    }
  }
}

TEST_F(NativeKeepsFloat16, CodeForOldProcessorsConvertsToo) {
  const auto old =
      ToolchainConfiguration(standard_).With("inference_precision", "f16").With("mcpu", "x86-64-v3").Make();
  const Var x = Input("x", {2, 24, 15, 14});
  const Function function = MakeFunction({x}, MakeCall("sigmoid", {x}));
  ExpectAgrees(*old, function, {.layouts = AllKeptAs(kFloat16, function), .tolerance = kTolerance});
}

TEST_F(NativeKeepsFloat16, ComputesInFloat32) {
  const Var x = Input("x", {1, 64, 9, 9});
  const Function conv = MakeFunction({x}, MakeCall("nn.conv2d", {x, RandomConstant({32, 64, 1, 1}, 1)}));
  const Function relu = MakeFunction({x}, MakeCall("nn.relu", {x}));
  for (const Function& function : {conv, relu}) InferType(function);
  const auto error = [&](const Function& function, Layout in, Layout out) {
    const TuningRecord record = MeasurePartition(*native_, {function, {{in}, {out}}, 1}, {});
    EXPECT_TRUE(record.ok) << record.reason;
    return record.max_error;
  };
  constexpr Layout kNarrow = Layout::kChannelsLastFloat16;
  EXPECT_LT(error(conv, kNarrow, Layout::kChannelsLast), 1e-6) << "what data are rounded by is not the kernel's";
  EXPECT_EQ(error(relu, kNarrow, kNarrow), 0) << "what is rounded already";
  EXPECT_GT(error(relu, Layout::kChannelsLast, kNarrow), 1e-5);
}

TEST_F(NativeKeepsFloat16, OffersToKeepWhatMayBeKept) {
  const Var x = Input("x", {1, 16, 6, 6});
  const Var n = MakeVar("n", TensorType(Shape{1, 16, 6, 6}, kInt32));
  const Function conv = MakeFunction({x}, MakeCall("nn.conv2d", {x, RandomConstant({8, 16, 1, 1}, 1)}));
  const Function integers = MakeFunction({n}, MakeCall("nn.relu", {n}));
  for (const Function& function : {conv, integers}) InferType(function);
  constexpr Layout kNarrow = Layout::kChannelsLastFloat16;
  const std::vector<BoundaryLayouts> any{
      {{kNarrow}, {kNarrow}}, {{kNarrow}, {Layout::kChannelsLast}}, {{Layout::kChannelsLast}, {kNarrow}}};
  EXPECT_EQ(native_->Layouts(conv, {true}, {true}), any) << "nothing else differs from the standard";
  EXPECT_EQ(native_->Layouts(integers, {true}, {true}).size(), 0u);
  EXPECT_TRUE(native_->only_keeps_precision());
  EXPECT_FALSE(standard_.only_keeps_precision());
  const Result<LoweredPartition> lowered =
      native_->RelayToTIR({conv, {{Layout::kChannelsLast}, {Layout::kChannelsLast}}, 1});
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.reason().text, "nothing that it reads or writes is kept as float16");
}

TEST_F(NativeKeepsFloat16, ReadsDataKeptSoInPlace) {
  const Var x = Input("x", {1, 64, 9, 9});
  const Expr depthwise =
      MakeCall("nn.conv2d", {x, RandomConstant({64, 1, 3, 3}, 1)}, {{"groups", 64}, {"padding", V{1, 1}}});
  for (const Expr& result : {depthwise, MakeCall("nn.global_avg_pool2d", {x}), MakeCall("tanh", {x})}) {
    const Function function = MakeFunction({x}, result);
    const BoundaryLayouts layouts = AllKeptAs(kFloat16, function);
    const Result<LoweredPartition> lowered = native_->RelayToTIR({function, layouts, 1});
    ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
    EXPECT_EQ(lowered->workspace_bytes, 0u) << As<CallNode>(result)->op()->name;
  }
}

TEST_F(NativeKeepsFloat16, ExcludesExactness) {
  const ToolchainConfiguration keeps = ToolchainConfiguration(standard_).With("inference_precision", "f16");
  EXPECT_THROW(keeps.With("accuracy", "exact").Make(), Error);
  EXPECT_THROW(keeps.With("inference_precision", "fp8").Make(), Error);
}

}  // namespace
}  // namespace collage
