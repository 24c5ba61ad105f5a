// bfloat16_test.cc: toolchains that are told to compute float32 models in bfloat16, against the reference: with the
// tolerance of that type, and, of values that are bfloat16 already, with that of float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "conformance/narrow_values.h"
#include "cost/measure/measure.h"
#include "support/machine.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using conformance::Activation;
using conformance::Activations;
using conformance::Anchor;
using conformance::Anchors;
using conformance::BuiltinToolchain;
using conformance::ExpectAgrees;
using conformance::ExpectPatternAgrees;
using conformance::Input;
using conformance::Options;
using conformance::Plus;
using conformance::RandomConstant;
using conformance::RandomTensor;
using V = std::vector<int64_t>;

// Of the largest result: factors are rounded to 8 bits, 2^-9 of themselves at most, and sums of them less.
constexpr double kTolerance = 1e-2;

bool MultipliesBFloat16() {
  const std::vector<std::string>& features = ThisMachine().features;
  return std::ranges::find(features, "avx512_bf16") != features.end();
}

/// A toolchain told so by its one option of that name, and told nothing else.
class InBFloat16 : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Toolchain& plain = BuiltinToolchain(GetParam());
    if (!plain.Probe().available) GTEST_SKIP() << plain.Probe().reason;
    if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
    toolchain_ = ToolchainConfiguration(plain).With("inference_precision", "bf16").Make();
  }

  /// As what the toolchain takes: a match of a pattern, or the calls themselves.
  void ExpectTaken(const std::string& row, const Function& function, Options options = {}) const {
    SCOPED_TRACE(row);
    options.tolerance = kTolerance;
    if (toolchain_->PatternTable().empty()) {
      ExpectAgrees(*toolchain_, function, options);
    } else {
      ExpectPatternAgrees(*toolchain_, std::string(GetParam()) + "." + row, function, options);
    }
  }

  std::unique_ptr<const Toolchain> toolchain_;
};

Layout Favourite(const Shape& shape) {
  return shape.size() >= 3 && shape.size() <= 5 ? Layout::kChannelsLast : Layout::kPlain;
}

TEST_P(InBFloat16, ContractionsAgree) {
  for (const Anchor& a : Anchors()) {
    const Layout layout = a.name == "dense" ? Layout::kPlain : Favourite(a.shape());
    for (const int threads : {1, 2}) {
      const Options options{.layouts = {{layout}, {layout}}, .num_threads = threads};
      ExpectTaken(a.name, MakeFunction({a.x}, a.result), options);
      ExpectTaken(a.name + "_bias", MakeFunction({a.x}, a.Biased()), options);
    }
  }
}

TEST_P(InBFloat16, ActivationsAreComputedInFloat32) {
  for (const Anchor& a : {Anchor::Conv(2), Anchor::Dense()}) {
    const Layout layout = a.name == "dense" ? Layout::kPlain : Favourite(a.shape());
    for (const Activation& activation : Activations()) {
      ExpectTaken(a.name + "_bias" + activation.suffix, MakeFunction({a.x}, activation.apply(a.Biased())),
                  {.layouts = {{layout}, {layout}}});
    }
  }
}

TEST_P(InBFloat16, ResidualsAreAdded) {
  for (const Anchor& a : {Anchor::Conv(2), Anchor::Dense()}) {
    const Layout layout = a.name == "dense" ? Layout::kPlain : Favourite(a.shape());
    const Var r = Input("r", a.shape());
    ExpectTaken(a.name + "_bias_sum_relu", MakeFunction({a.x, r}, MakeCall("nn.relu", {Plus(a.Biased(), r)})),
                {.layouts = {{layout, layout}, {layout}}});
  }
}

TEST_P(InBFloat16, ConvolutionsOfManyShapes) {
  struct Case {
    Shape data, weight;
    Attrs attrs;
  };
  const std::vector<Case> cases{
      {{1, 32, 7, 7}, {40, 32, 1, 1}, {}},
      {{2, 64, 5, 6}, {33, 64, 1, 1}, {{"strides", V{2, 2}}}},
      {{1, 64, 9, 8}, {32, 64, 1, 1}, {{"strides", V{1, 3}}}},
      {{1, 16, 9, 11}, {8, 16, 3, 3}, {{"padding", V{0, 1, 2, 3}}}},
      {{2, 16, 13, 12}, {17, 16, 3, 3}, {{"padding", V{1, 1}}, {"strides", V{2, 3}}}},
      {{1, 16, 19, 13}, {16, 16, 3, 2}, {{"dilation", V{2, 3}}, {"padding", V{2, 1}}}},
      {{1, 32, 9, 11}, {48, 8, 3, 3}, {{"groups", 4}, {"padding", V{1, 1}}}},
      {{1, 6, 23, 23}, {70, 6, 7, 7}, {{"padding", V{3, 3}}, {"strides", V{2, 2}}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(ToString(c.data) + " by " + ToString(c.weight));
    const Var x = Input("x", c.data);
    const Expr conv = MakeCall("nn.conv2d", {x, RandomConstant(c.weight, 3, -0.1, 0.1)}, c.attrs);
    ExpectTaken("conv2d_bias", MakeFunction({x}, Plus(conv, RandomConstant({c.weight[0], 1, 1}, 4))),
                {.layouts = {{Layout::kChannelsLast}, {Layout::kChannelsLast}}});
  }
  const Var x = Input("x", {1, 16, 6, 7});
  const Expr transposed = MakeCall("nn.conv2d_transpose", {x, RandomConstant({16, 24, 4, 4}, 3, -0.1, 0.1)},
                                   {{"strides", V{2, 2}}, {"padding", V{1, 1}}});
  ExpectTaken("deconv2d", MakeFunction({x}, transposed),
              {.layouts = {{Layout::kChannelsLast}, {Layout::kChannelsLast}}});
}

TEST_P(InBFloat16, ProductsOfManyShapes) {
  for (const auto& [m, k, n] : {std::tuple{1, 256, 100}, {17, 24, 33}, {128, 64, 128}, {5, 130, 7}}) {
    SCOPED_TRACE(ToString({m, k, n}));
    const Var x = Input("x", {m, k});
    ExpectTaken("dense", MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({n, k}, 5, -0.1, 0.1)})));
    const Var a = Input("a", {3, m, k});
    for (const bool transposed : {false, true}) {
      const Var b = Input("b", transposed ? Shape{3, n, k} : Shape{3, k, n});
      ExpectTaken("batch_matmul",
                  MakeFunction({a, b}, MakeCall("nn.batch_matmul", {a, b},
                                                {{"transpose_a", false}, {"transpose_b", transposed}})));
    }
  }
}

TEST_P(InBFloat16, ValuesBetweenPartitionsMayBeKeptSo) {
  constexpr Layout kNarrow = Layout::kChannelsLastBFloat16;
  const Anchor first = Anchor::Conv(2);
  const Function offered = MakeFunction({first.x}, first.result);
  InferType(offered);
  const std::vector<BoundaryLayouts> layouts = toolchain_->Layouts(offered, {true}, {true});
  const BoundaryLayouts narrow{{kNarrow}, {kNarrow}};
  if (std::ranges::find(layouts, narrow) == layouts.end()) return;  // it takes float32 only
  for (const int rank : {1, 2, 3}) {
    const Anchor a = Anchor::Conv(rank);
    for (const int threads : {1, 2}) {
      for (const Layout input : {kNarrow, Layout::kChannelsLast}) {
        for (const Layout output : {kNarrow, Layout::kChannelsLast}) {
          const Options options{.layouts = {{input}, {output}}, .num_threads = threads};
          ExpectTaken(a.name + "_bias", MakeFunction({a.x}, a.Biased()), options);
        }
      }
    }
    const Var r = Input("r", a.shape());
    ExpectTaken(a.name + "_bias_sum_relu", MakeFunction({a.x, r}, MakeCall("nn.relu", {Plus(a.Biased(), r)})),
                {.layouts = {{kNarrow, kNarrow}, {kNarrow}}});
  }
  const Var a = Input("a", {3, 17, 24});
  const Var b = Input("b", {3, 24, 32});
  const Function product =
      MakeFunction({a, b}, MakeCall("nn.batch_matmul", {a, b}, {{"transpose_a", false}, {"transpose_b", false}}));
  for (const Layout left : {Layout::kPlain, Layout::kPlainBFloat16}) {
    for (const Layout right : {Layout::kPlain, Layout::kPlainBFloat16}) {
      ExpectTaken("batch_matmul", product, {.layouts = {{left, right}, {Layout::kPlainBFloat16}}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Toolchains, InBFloat16, testing::Values("native", "dnnl", "openvino"),
                         [](const auto& info) { return std::string(info.param); });

TEST(NativeInBFloat16, RoundsFactorsAndNothingElse) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const auto native = ToolchainConfiguration(BuiltinToolchain("native")).With("inference_precision", "bf16").Make();
  const auto rounded = [](const Expr& x) {
    return MakeCall("cast", {MakeCall("cast", {x}, {{"dtype", kBFloat16}})}, {{"dtype", kFloat32}});
  };
  // Products of what is rounded already are exact, and so are results but for the order of sums.
  const Var x = Input("x", {1, 64, 11, 10});
  const Expr conv = MakeCall("nn.conv2d", {rounded(x), rounded(RandomConstant({48, 64, 3, 3}, 3, -0.1, 0.1))},
                             {{"padding", V{1, 1}}, {"strides", V{2, 2}}});
  const Expr result = MakeCall("tanh", {Plus(conv, RandomConstant({48, 1, 1}, 4))});
  ExpectAgrees(*native, MakeFunction({x}, result), {.tolerance = 1e-5});
  const Var a = Input("a", {37, 96});
  const Expr dense = MakeCall("nn.dense", {rounded(a), rounded(RandomConstant({50, 96}, 5, -0.1, 0.1))});
  ExpectAgrees(*native, MakeFunction({a}, Plus(dense, RandomConstant({50}, 6))), {.tolerance = 1e-5});
}

TEST(NativeInBFloat16, TakesWhatThatChanges) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const auto native = ToolchainConfiguration(BuiltinToolchain("native")).With("inference_precision", "bf16").Make();
  EXPECT_NE(native->Probe().version, BuiltinToolchain("native").Probe().version) << "its times are others";
  const auto num_layouts = [&](const Function& function) {
    InferType(function);
    return native->Layouts(function, std::vector<bool>(function->params().size(), false), {false}).size();
  };
  const auto lowered = [&](const Function& function) {
    InferType(function);
    return native->RelayToTIR({function, PlainLayouts(function->params().size(), 1), 1});
  };
  const Var x = Input("x", {4, 8});
  const Function dense = MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({6, 8}, 1)}));
  EXPECT_EQ(num_layouts(dense), 1u);
  EXPECT_TRUE(lowered(dense).ok());
  const Function relu = MakeFunction({x}, MakeCall("nn.relu", {x}));
  EXPECT_EQ(num_layouts(relu), 0u);
  const Var odd = Input("x", {4, 7});
  const Function broken = MakeFunction({odd}, MakeCall("nn.dense", {odd, RandomConstant({6, 7}, 1)}));
  EXPECT_EQ(lowered(broken).reason().text, "nothing in it is computed in bfloat16");
  const ToolchainConfiguration plain(BuiltinToolchain("native"));
  EXPECT_THROW(plain.With("inference_precision", "f8").Make(), Error);
  EXPECT_THROW(plain.With("inference_precision", "bf16").With("accuracy", "exact").Make(), Error);
}

TEST(NativeInBFloat16, OffersWhatItComputesSoAndNothingElse) {
  // Whatever processor this is: candidates do not depend on it.
  const auto native = [](const char* schedule, int64_t tile) {
    return ToolchainConfiguration(BuiltinToolchain("native"))
        .With("inference_precision", "bf16")
        .With("mcpu", "znver4")
        .With("schedule", schedule)
        .With("winograd_tile", tile)
        .Make();
  };
  const auto conv = [](const Shape& data, const Shape& weight, const Attrs& attrs = {}) {
    const Var x = Input("x", data);
    const std::string op = "nn.conv" + std::to_string(data.size() - 2) + "d";
    return MakeFunction({x}, MakeCall(op, {x, RandomConstant(weight, 3)}, attrs));
  };
  const auto matmul = [](bool transposes_left, int64_t depth) {
    const Var x = Input("x", transposes_left ? Shape{depth, 6} : Shape{6, depth});
    return MakeFunction({x},
                        MakeCall("nn.matmul", {x, RandomConstant({depth, 8}, 3)}, {{"transpose_a", transposes_left}}));
  };
  const Attrs same{{"padding", V{1, 1}}};
  const auto groups = [](int64_t count) { return Attrs{{"padding", V{1, 1}}, {"groups", count}}; };
  const Var scaled = Input("x", {1, 33, 12, 12});
  const Expr times =
      MakeCall("multiply", {scaled, MakeCall("mean", {scaled}, {{"axis", V{2, 3}}, {"keepdims", true}})});
  const Var unknown = Input("w", {32, 33, 3, 3});
  const Var image = Input("x", {1, 33, 12, 12});
  const Var bytes = Input("x", {1, 16, 12, 12}, kInt8);
  const auto dequantise = [](const Expr& of) {
    return MakeCall("qnn.dequantize", {of, MakeScalar(0.5, kFloat32), MakeScalar(0, kInt32)});
  };
  const Expr taps = MakeConstant(RandomTensor({32, 16, 3, 3}, kInt8, -100, 100, 3));
  struct Case {
    const char* what;
    Function function;
    bool is_offered;
    const char* schedule = "";
    int64_t tile = 0;
  };
  const std::vector<Case> cases{
      {"pairs of channels", conv({1, 16, 12, 12}, {32, 16, 3, 3}, same), true},
      {"an image's three", conv({1, 3, 24, 24}, {32, 3, 7, 7}, {{"strides", V{2, 2}}}), false},
      {"few channels", conv({1, 3, 24, 24}, {64, 3, 3, 3}, same), false},
      {"few channels, transformed", conv({1, 3, 24, 24}, {64, 3, 3, 3}, same), true, "", 2},
      {"one channel, transformed", conv({1, 1, 24, 24}, {64, 1, 3, 3}, same), true, "algorithm=winograd2"},
      {"odd channels", conv({1, 33, 12, 12}, {32, 33, 3, 3}, same), true},
      {"odd channels, few pixels", conv({1, 33, 2, 2}, {8, 33, 3, 3}, same), true},
      {"odd channels, directly", conv({1, 33, 12, 12}, {32, 33, 3, 3}, same), false, "algorithm=direct"},
      {"odd channels with a stride", conv({1, 33, 12, 12}, {32, 33, 3, 3}, {{"strides", V{2, 2}}}), false},
      {"odd channels, one tap", conv({1, 33, 12, 12}, {32, 33, 1, 1}), false},
      {"odd channels, errors of 5x5 taps", conv({1, 33, 12, 12}, {32, 33, 5, 5}), false},
      {"odd channels of a series", conv({1, 33, 40}, {32, 33, 5}), true},
      {"odd channels of unknown taps", MakeFunction({image, unknown}, MakeCall("nn.conv2d", {image, unknown})), false},
      {"odd channels that are scaled",
       MakeFunction({scaled}, MakeCall("nn.conv2d", {times, RandomConstant({32, 33, 3, 3}, 3)})), true},
      {"depthwise", conv({1, 32, 12, 12}, {32, 1, 3, 3}, groups(32)), false},
      {"groups of 4", conv({1, 32, 12, 12}, {32, 4, 3, 3}, groups(8)), false},
      {"groups of 6", conv({1, 24, 12, 12}, {24, 6, 3, 3}, groups(4)), true},
      {"groups of 16", conv({1, 32, 12, 12}, {32, 16, 3, 3}, groups(2)), true},
      {"groups of 4 to 8", conv({1, 32, 12, 12}, {64, 4, 3, 3}, groups(8)), true},
      {"groups of 9", conv({1, 36, 12, 12}, {36, 9, 3, 3}, groups(4)), false},
      {"rows", matmul(false, 8), true},
      {"odd rows", matmul(false, 7), false},
      {"columns", matmul(true, 8), false},
      {"bytes", MakeFunction({bytes}, MakeCall("nn.conv2d", {dequantise(bytes), dequantise(taps)})), false},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    InferType(test.function);
    const size_t num_inputs = test.function->params().size();
    const auto toolchain = native(test.schedule, test.tile);
    const bool is_offered = !toolchain->Layouts(test.function, std::vector<bool>(num_inputs, false), {false}).empty();
    EXPECT_EQ(is_offered, test.is_offered);
    for (const int threads : {1, 8}) {
      const Result<LoweredPartition> lowered =
          toolchain->RelayToTIR({test.function, PlainLayouts(num_inputs, 1), threads});
      EXPECT_EQ(lowered.ok(), is_offered);
    }
  }
}

Options KeptAsBFloat16(const Function& function, int num_threads = 1) {
  return {.layouts = conformance::AllKeptAs(kBFloat16, function), .num_threads = num_threads, .tolerance = kTolerance};
}

TEST(NativeInBFloat16, TakesAndGivesValuesKeptSo) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const auto native = ToolchainConfiguration(BuiltinToolchain("native")).With("inference_precision", "bf16").Make();
  const Var x = Input("x", {2, 24, 15, 14});
  for (const Expr& result : conformance::OneOfEachKind(x)) {
    const Function function = MakeFunction({x}, result);
    SCOPED_TRACE(As<CallNode>(result)->op()->name);
    for (const int threads : {1, 2}) ExpectAgrees(*native, function, KeptAsBFloat16(function, threads));
  }
  // One of several values, of several results.
  const Var y = Input("y", {2, 24, 15, 14});
  const Expr sum = MakeCall("add", {x, y});
  const Function several = MakeFunction({x, y}, MakeTuple({sum, MakeCall("nn.relu", {sum})}));
  for (const Layout input : {Layout::kPlain, Layout::kChannelsLastBFloat16, Layout::kPlainBFloat16}) {
    for (const Layout output : {Layout::kPlain, Layout::kChannelsLastBFloat16, Layout::kPlainBFloat16}) {
      if (!NarrowType(input) && !NarrowType(output)) continue;  // left to the standard
      ExpectAgrees(
          *native, several,
          {.layouts = {{input, Layout::kChannelsLast}, {output, Layout::kChannelsLast}}, .tolerance = kTolerance});
    }
  }
}

TEST(NativeInBFloat16, OffersToKeepWhatMayBeKept) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const Toolchain& standard = BuiltinToolchain("native");
  const auto native = ToolchainConfiguration(standard).With("inference_precision", "bf16").Make();
  const Var x = Input("x", {1, 16, 6, 6});
  const Var n = MakeVar("n", TensorType(Shape{1, 16, 6, 6}, kInt32));
  const Function conv = MakeFunction({x}, MakeCall("nn.conv2d", {x, RandomConstant({8, 16, 1, 1}, 1)}));
  const Function relu = MakeFunction({x}, MakeCall("nn.relu", {x}));
  const Function integers = MakeFunction({n}, MakeCall("nn.relu", {n}));
  for (const Function& function : {conv, relu, integers}) InferType(function);
  constexpr Layout kNarrow = Layout::kChannelsLastBFloat16;
  const BoundaryLayouts narrow{{kNarrow}, {kNarrow}};
  const std::vector<BoundaryLayouts> any{
      narrow, {{kNarrow}, {Layout::kChannelsLast}}, {{Layout::kChannelsLast}, {kNarrow}}};
  const std::vector<BoundaryLayouts> of_conv = native->Layouts(conv, {true}, {true});
  EXPECT_FALSE(KeepsNarrow(of_conv.front())) << "neighbours may want float32";
  EXPECT_TRUE(std::equal(any.begin(), any.end(), of_conv.end() - 3, of_conv.end()));
  EXPECT_EQ(native->Layouts(conv, {false}, {true}).back(), (BoundaryLayouts{{Layout::kPlain}, {kNarrow}}));
  EXPECT_EQ(native->Layouts(relu, {true}, {true}), any) << "nothing else differs from the standard";
  EXPECT_EQ(native->Layouts(integers, {true}, {true}).size(), 0u);
  for (const BoundaryLayouts& layouts : standard.Layouts(conv, {true}, {true})) EXPECT_FALSE(KeepsNarrow(layouts));
}

TEST(NativeInBFloat16, WhatInputsAreRoundedByIsNotTheKernels) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const Toolchain& standard = BuiltinToolchain("native");
  const auto native = ToolchainConfiguration(standard).With("inference_precision", "bf16").Make();
  const Var x = Input("x", {1, 16, 6, 6});
  const Function relu = MakeFunction({x}, MakeCall("nn.relu", {x}));
  InferType(relu);
  constexpr Layout kNarrow = Layout::kChannelsLastBFloat16;
  const auto error = [&](const Toolchain& toolchain, const BoundaryLayouts& layouts) {
    const TuningRecord record = MeasurePartition(toolchain, {relu, layouts, 1}, {});
    EXPECT_TRUE(record.ok) << record.reason;
    return record.max_error;
  };
  EXPECT_EQ(error(*native, {{kNarrow}, {kNarrow}}), 0) << "what is rounded already";
  EXPECT_EQ(error(standard, {{Layout::kChannelsLast}, {Layout::kChannelsLast}}), 0);
  EXPECT_GT(error(*native, {{Layout::kChannelsLast}, {kNarrow}}), 1e-4);
}

TEST(NativeInBFloat16, ReadsDataKeptSoInPlace) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const auto native = ToolchainConfiguration(BuiltinToolchain("native")).With("inference_precision", "bf16").Make();
  const Var x = Input("x", {1, 64, 9, 9});
  const Expr pointwise = MakeCall("nn.conv2d", {x, RandomConstant({32, 64, 1, 1}, 1)});
  const Expr depthwise =
      MakeCall("nn.conv2d", {x, RandomConstant({64, 1, 3, 3}, 1)}, {{"groups", 64}, {"padding", V{1, 1}}});
  for (const Expr& result : {pointwise, depthwise, MakeCall("nn.global_avg_pool2d", {x})}) {
    const Function function = MakeFunction({x}, result);
    const Options options = KeptAsBFloat16(function);
    const Result<LoweredPartition> lowered = native->RelayToTIR({function, options.layouts, 1});
    ASSERT_TRUE(lowered.ok()) << lowered.reason().text;
    EXPECT_EQ(lowered->workspace_bytes, 0u) << As<CallNode>(result)->op()->name;
  }
}

TEST(NativeInBFloat16, RoundsNoPixelThatIsNotRead) {
  if (!MultipliesBFloat16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const auto native = ToolchainConfiguration(BuiltinToolchain("native")).With("inference_precision", "bf16").Make();
  const auto workspace_bytes = [&](int64_t size, int64_t stride) {
    const Var x = Input("x", {1, 64, size, size});
    const Function function = MakeFunction(
        {x}, MakeCall("nn.conv2d", {x, RandomConstant({32, 64, 1, 1}, 1)}, {{"strides", V{stride, stride}}}));
    InferType(function);
    const BoundaryLayouts last{{Layout::kChannelsLast}, {Layout::kChannelsLast}};
    const Result<LoweredPartition> lowered = native->RelayToTIR({function, last, 1});
    return lowered.ok() ? lowered->workspace_bytes : 0;
  };
  EXPECT_EQ(workspace_bytes(4, 1), 2u * 64 * 4 * 4);
  EXPECT_EQ(workspace_bytes(8, 2), workspace_bytes(4, 1));
  EXPECT_EQ(workspace_bytes(11, 3), workspace_bytes(4, 1));
}

TEST(DnnlInBFloat16, TakesProductsOfFloat32Alone) {
  const Toolchain& plain = BuiltinToolchain("dnnl");
  if (!plain.Probe().available) GTEST_SKIP() << plain.Probe().reason;
  const auto dnnl = ToolchainConfiguration(plain).With("inference_precision", "bf16").Make();
  const auto refusal = [&](const std::string& row, const Function& function) -> std::string {
    InferType(function);
    for (const PatternTableEntry& entry : dnnl->PatternTable()) {
      if (entry.name != row) continue;
      const Result<void> answer = entry.predicate(function);
      return answer.ok() ? "none" : answer.reason().text;
    }
    return "no such row";
  };
  const Var x = Input("x", {4, 8});
  EXPECT_EQ(refusal("dnnl.dense", MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({6, 8}, 1)}))), "none");
  EXPECT_EQ(refusal("dnnl.softmax", MakeFunction({x}, MakeCall("nn.softmax", {x}, {{"axis", -1}}))),
            "computes products of float32 values in bfloat16, nothing else");
  EXPECT_THROW(ToolchainConfiguration(plain).With("inference_precision", "f16").Make(), Error);
}

}  // namespace
}  // namespace collage
