// dnnl_test.cc: every pattern of oneDNN's table against the reference: paddings, strides, dilation, groups, layouts,
// threads.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>

#include "collage/runtime/kernel.h"
#include "conformance/dnnl_rows.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

using conformance::Activation;
using conformance::Activations;
using conformance::Anchor;
using conformance::Anchors;
using conformance::Clip;
using conformance::Div;
using conformance::Dnnl;
using conformance::DnnlTest;
using conformance::ExpectRow;
using conformance::Input;
using conformance::Mul;
using conformance::Options;
using conformance::Plus;
using conformance::RandomConstant;
using conformance::RefusalOf;
using conformance::Scalar;
using V = std::vector<int64_t>;

// ---- convolutions ----

struct ConvCase {
  const char* label;
  Shape data;
  Shape weight;
  Attrs attrs;
};

const std::vector<ConvCase>& ConvCases() {
  static const std::vector<ConvCase> cases{
      {"pointwise", {1, 32, 7, 7}, {40, 32, 1, 1}, {}},
      {"same", {1, 16, 14, 15}, {24, 16, 3, 3}, {{"padding", V{1, 1}}}},
      {"asymmetric", {1, 16, 9, 11}, {8, 16, 3, 3}, {{"padding", V{0, 1, 2, 3}}}},
      {"strided", {2, 16, 13, 12}, {17, 16, 3, 3}, {{"padding", V{1, 1}}, {"strides", V{2, 3}}}},
      {"dilated", {1, 16, 19, 13}, {16, 16, 3, 2}, {{"dilation", V{2, 3}}, {"padding", V{2, 1}}}},
      {"grouped", {1, 32, 9, 11}, {48, 8, 3, 3}, {{"groups", 4}, {"padding", V{1, 1}}}},
      {"depthwise", {1, 24, 9, 11}, {24, 1, 5, 5}, {{"groups", 24}, {"padding", V{2, 2}}}},
      {"depthwise_strided",
       {1, 32, 14, 14},
       {32, 1, 3, 3},
       {{"groups", 32}, {"padding", V{1, 1}}, {"strides", V{2, 2}}}},
      {"image", {1, 3, 23, 23}, {16, 3, 7, 7}, {{"padding", V{3, 3}}, {"strides", V{2, 2}}}},
  };
  return cases;
}

class DnnlConv : public testing::TestWithParam<ConvCase> {};

TEST_P(DnnlConv, AgreesInEveryLayoutItOffers) {
  if (!Dnnl().Probe().available) GTEST_SKIP() << Dnnl().Probe().reason;
  const ConvCase& c = GetParam();
  const Var x = Input("x", c.data);
  const Expr conv = MakeCall("nn.conv2d", {x, RandomConstant(c.weight, 3, -0.3, 0.3)}, c.attrs);
  const Function function =
      MakeFunction({x}, MakeCall("nn.relu", {Plus(conv, RandomConstant({c.weight[0], 1, 1}, 4))}));
  InferType(function);
  const auto layouts = Dnnl().Layouts(function, {true}, {true});
  ASSERT_GE(layouts.size(), 2u);
  EXPECT_EQ(layouts[0].inputs[0], Layout::kChannelsLast);
  int compiled = 0;
  for (const BoundaryLayouts& choice : layouts) {
    SCOPED_TRACE(std::string(ToString(choice.inputs[0])) + " to " + std::string(ToString(choice.outputs[0])));
    // Plain grouped convolutions may have reference implementations only, which are declined.
    if (choice != layouts[0] && !Dnnl().RelayToRuntime({function, choice, 1})) continue;
    ++compiled;
    for (int threads : {1, 2}) {
      ExpectRow("dnnl.conv2d_bias_relu", function, {.layouts = choice, .num_threads = threads});
    }
  }
  EXPECT_GE(compiled, 1);
}

INSTANTIATE_TEST_SUITE_P(Cases, DnnlConv, testing::ValuesIn(ConvCases()),
                         [](const auto& info) { return std::string(info.param.label); });

TEST_F(DnnlTest, ConvolutionsAndProductsStandAlone) {
  for (const Anchor& a : Anchors()) {
    ExpectRow("dnnl." + a.name, MakeFunction({a.x}, a.result));
    ExpectRow("dnnl." + a.name + "_bias", MakeFunction({a.x}, a.Biased()));
  }
}

TEST_F(DnnlTest, BiasMayBeBiasAdd) {
  const Anchor a = Anchor::Conv(2);
  ExpectRow("dnnl.conv2d_bias", MakeFunction({a.x}, MakeCall("nn.bias_add", {a.result, RandomConstant({32}, 8)})));
  const Anchor d = Anchor::Dense();
  ExpectRow("dnnl.dense_bias",
            MakeFunction({d.x}, MakeCall("nn.bias_add", {d.result, RandomConstant({32}, 8)}, {{"axis", -1}})));
}

TEST_F(DnnlTest, ActivationsFollowAnchorsWithAndWithoutBias) {
  for (const Anchor& a : {Anchor::Conv(2), Anchor::Dense()}) {
    for (const Activation& activation : Activations()) {
      ExpectRow("dnnl." + a.name + activation.suffix, MakeFunction({a.x}, activation.apply(a.result)));
      ExpectRow("dnnl." + a.name + "_bias" + activation.suffix, MakeFunction({a.x}, activation.apply(a.Biased())));
    }
  }
}

/// oneDNN adds tensors to convolutions in channels-last only.
Options PreferredLayouts(const Anchor& anchor) {
  const Layout layout = anchor.name == "dense" ? Layout::kPlain : Layout::kChannelsLast;
  return {.layouts = {{layout, layout}, {layout}}};
}

TEST_F(DnnlTest, ResidualsAreAdded) {
  for (const Anchor& a : Anchors()) {
    const Options options = PreferredLayouts(a);
    const Var r = Input("r", a.shape());
    const Expr sum = Plus(a.Biased(), r);
    ExpectRow("dnnl." + a.name + "_bias_sum", MakeFunction({a.x, r}, sum), options);
    ExpectRow("dnnl." + a.name + "_bias_sum_relu", MakeFunction({r, a.x}, MakeCall("nn.relu", {sum})), options);
    ExpectRow("dnnl." + a.name + "_bias_sum_clip", MakeFunction({a.x, r}, Clip(Plus(r, a.Biased()), 0, 0.5)), options);
    ExpectRow("dnnl." + a.name + "_sum_relu", MakeFunction({a.x, r}, MakeCall("nn.relu", {Plus(a.result, r)})),
              options);
  }
}

TEST_F(DnnlTest, ResidualsMayBeChannelsLast) {
  const Anchor a = Anchor::Conv(2);
  const Var r = Input("r", a.shape());
  const Function function = MakeFunction({a.x, r}, Plus(a.Biased(), r));
  const Layout last = Layout::kChannelsLast;
  ExpectRow("dnnl.conv2d_bias_sum", function, {.layouts = {{last, last}, {last}}});
  ExpectRow("dnnl.conv2d_bias_sum", function, {.layouts = {{last, Layout::kPlain}, {last}}});
}

TEST_F(DnnlTest, ResultsAreMultipliedByABroadcastTensor) {
  const Anchor a = Anchor::Conv(2);
  for (const Shape& shape : {Shape{1, 32, 1, 1}, Shape{1, 32, 7, 9}}) {
    const Var m = Input("m", shape);
    ExpectRow("dnnl.conv2d_bias_multiply", MakeFunction({a.x, m}, Mul(a.Biased(), m)), PreferredLayouts(a));
  }
}

TEST_F(DnnlTest, TransposedConvolutions) {
  struct Case {
    Shape data, weight;
    Attrs attrs;
  };
  const std::vector<Case> cases{
      {{1, 16, 7, 9}, {16, 24, 4, 4}, {{"strides", V{2, 2}}, {"padding", V{1, 1}}}},
      {{1, 16, 7, 9}, {16, 8, 2, 2}, {{"strides", V{2, 2}}}},
      {{1, 16, 6, 5}, {16, 8, 3, 3}, {{"strides", V{2, 2}}, {"padding", V{1, 1}}, {"output_padding", V{1, 1}}}},
      {{1, 16, 6, 5}, {16, 4, 3, 3}, {{"groups", 2}, {"padding", V{1, 0, 0, 1}}}},
      {{1, 32, 1, 1}, {32, 16, 4, 4}, {}},
  };
  const Layout last = Layout::kChannelsLast;
  for (const Case& c : cases) {
    const Var x = Input("x", c.data);
    const Expr deconv = MakeCall("nn.conv2d_transpose", {x, RandomConstant(c.weight, 9, -0.3, 0.3)}, c.attrs);
    const int64_t channels = AsTensorType(InferType(deconv))->static_shape()[1];
    const Expr biased = Plus(deconv, RandomConstant({channels, 1, 1}, 10));
    ExpectRow("dnnl.deconv2d_bias_tanh", MakeFunction({x}, MakeCall("tanh", {biased})), {.layouts = {{last}, {last}}});
  }
  const Var y = Input("y", {1, 16, 12});
  ExpectRow(
      "dnnl.deconv1d",
      MakeFunction({y}, MakeCall("nn.conv1d_transpose", {y, RandomConstant({16, 8, 4}, 11)}, {{"strides", V{2}}})),
      {.layouts = {{last}, {last}}});
}

// ---- products ----

TEST_F(DnnlTest, DenseSeesThroughTheReshapeOfASequence) {
  const Var x = Input("x", {14, 24});
  const Expr y = MakeCall("reshape", {MakeCall("nn.dense", {x, RandomConstant({10, 24}, 12, -0.4, 0.4)})},
                          {{"newshape", V{2, 7, 10}}});
  const Expr biased = Plus(y, RandomConstant({10}, 13));
  ExpectRow("dnnl.dense_bias", MakeFunction({x}, biased));
  const Var r = Input("r", {2, 7, 10});
  ExpectRow("dnnl.dense_bias_sum", MakeFunction({x, r}, Plus(biased, r)));
  ExpectRow("dnnl.dense_bias_gelu",
            MakeFunction({x}, Mul(Mul(biased, Plus(MakeCall("erf", {Div(biased, Scalar(std::sqrt(2.0)))}), Scalar(1))),
                                  Scalar(0.5))));
}

TEST_F(DnnlTest, ProductsOfMatrices) {
  for (bool transpose : {false, true}) {
    const Attrs attrs{{"transpose_b", transpose}};
    const Var a = Input("a", {17, 9}), b = Input("b", transpose ? Shape{21, 9} : Shape{9, 21});
    ExpectRow("dnnl.matmul", MakeFunction({a, b}, MakeCall("nn.matmul", {a, b}, attrs)));
    const Var x = Input("x", {6, 8, 4}), y = Input("y", transpose ? Shape{6, 5, 4} : Shape{6, 4, 5});
    const Expr product = MakeCall("nn.batch_matmul", {x, y}, attrs);
    ExpectRow("dnnl.batch_matmul", MakeFunction({x, y}, product), {.num_threads = 2});
    ExpectRow("dnnl.batch_matmul_scale", MakeFunction({x, y}, Div(product, Scalar(2))));
    const Var mask = Input("mask", {6, 8, 5});
    ExpectRow("dnnl.batch_matmul_add", MakeFunction({x, y, mask}, Plus(product, mask)));
  }
  const Var x = Input("x", {3, 5, 9}), y = Input("y", {1, 9, 6});
  ExpectRow("dnnl.batch_matmul", MakeFunction({x, y}, MakeCall("nn.batch_matmul", {x, y})));
  const Var u = Input("u", {1, 64}), w = Input("w", {10, 64});
  ExpectRow("dnnl.dense", MakeFunction({u, w}, MakeCall("nn.dense", {u, w})));
}

// ---- pools and normalisations ----

TEST_F(DnnlTest, Pools) {
  const std::vector<Attrs> windows{
      {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"padding", V{1, 1}}},
      {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}},
      {{"pool_size", V{3, 2}}, {"strides", V{2, 1}}, {"padding", V{0, 1, 1, 0}}},
      {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"ceil_mode", true}},
      {{"pool_size", V{2, 2}}, {"strides", V{3, 3}}},
  };
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    const Options options{.layouts = {{layout}, {layout}}};
    const Var x = Input("x", {1, 16, 13, 12});
    for (const Attrs& window : windows) {
      ExpectRow("dnnl.max_pool2d", MakeFunction({x}, MakeCall("nn.max_pool2d", {x}, window)), options);
      ExpectRow("dnnl.avg_pool2d", MakeFunction({x}, MakeCall("nn.avg_pool2d", {x}, window)), options);
    }
    Attrs counted = windows[0];
    counted.Set("count_include_pad", true);
    ExpectRow("dnnl.avg_pool2d", MakeFunction({x}, MakeCall("nn.avg_pool2d", {x}, counted)), options);
    ExpectRow("dnnl.global_avg_pool2d", MakeFunction({x}, MakeCall("nn.global_avg_pool2d", {x})), options);
    ExpectRow("dnnl.global_max_pool2d", MakeFunction({x}, MakeCall("nn.global_max_pool2d", {x})), options);
  }
}

TEST_F(DnnlTest, Normalisations) {
  const Options wide{.low = -4, .high = 4};
  const Var x = Input("x", {3, 5, 33});
  ExpectRow("dnnl.softmax", MakeFunction({x}, MakeCall("nn.softmax", {x})), wide);
  ExpectRow("dnnl.log_softmax", MakeFunction({x}, MakeCall("nn.log_softmax", {x})), wide);
  const Expr norm =
      MakeCall("nn.layer_norm", {x, RandomConstant({33}, 14), RandomConstant({33}, 15)}, {{"epsilon", 1e-6}});
  ExpectRow("dnnl.layer_norm", MakeFunction({x}, norm), wide);
}

// ---- refusals ----

TEST_F(DnnlTest, DeclinesWithReasons) {
  const Anchor a = Anchor::Dense();
  const Var d = Input("d", {4, 6}, kFloat64), e = Input("e", {5, 6}, kFloat64);
  EXPECT_EQ(RefusalOf(MakeFunction({d, e}, MakeCall("nn.dense", {d, e}))),
            "computes float32, bfloat16, float16 and 8-bit integers, got float64");
  EXPECT_EQ(RefusalOf(MakeFunction({a.x}, MakeCall("erf", {a.x}))), "has no operator that is a oneDNN primitive");
  const Var w = Input("w", {4, 16, 3, 3}), x = Input("x", {1, 16, 7, 7});
  EXPECT_EQ(RefusalOf(MakeFunction({x, w}, MakeCall("nn.conv2d", {x, w}))),
            "takes constant weights only, which are packed once");
  EXPECT_EQ(RefusalOf(MakeFunction({a.x}, MakeCall("erf", {a.result}))), "has no post-op for 'erf'");
  // Looks like GELU, but is scaled by another constant.
  const Expr almost =
      Mul(Mul(a.result, Plus(MakeCall("erf", {Div(a.result, Scalar(std::sqrt(2.0)))}), Scalar(1))), Scalar(0.4));
  EXPECT_NE(RefusalOf(MakeFunction({a.x}, almost)), "none");
  const Var r = Input("r", {3, 17, 32}), one = Input("one", {1, 24});
  EXPECT_EQ(RefusalOf(MakeFunction({a.x, r}, Plus(a.result, r))), "an operand has more dimensions than the result");
  // One row, to which seventeen are added.
  const Expr row = MakeCall("nn.dense", {one, RandomConstant({32, 24}, 16)});
  const Var rows = Input("rows", {17, 32});
  EXPECT_EQ(RefusalOf(MakeFunction({one, rows}, Plus(row, rows))), "'add' changes the size of the result");
}

TEST_F(DnnlTest, DeclinesReferenceImplementations) {
  const Var x = Input("x", {3, 5, 33});
  const Function function = MakeFunction({x}, MakeCall("nn.softmax", {x}, {{"axis", 1}}));
  InferType(function);
  const auto answer = Dnnl().RelayToRuntime({function, PlainLayouts(1, 1), 1});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.reason().text, "oneDNN has its reference implementation only ('ref:any')");
}

TEST_F(DnnlTest, KernelsShareNothingThatTheyWrite) {
  // Two kernels of equal structure and different weights, loaded at once: packed weights must not be mixed up.
  const auto dense = [](uint32_t seed) {
    const Var x = Input("x", {4, 24});
    return MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({32, 24}, seed)}));
  };
  ExpectRow("dnnl.dense", dense(21));
  ExpectRow("dnnl.dense", dense(22));
}

TEST_F(DnnlTest, KernelsOfEqualSpecsRunSideBySide) {
  // They share a primitive and differ in weights; each has its own scratch memory and addresses.
  const Var x = Input("x", {33, 240});
  constexpr int kKernels = 3;
  std::vector<CompiledPartition> partitions;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<Tensor> inputs, wanted, results, workspaces;
  for (uint32_t i = 0; i < kKernels; ++i) {
    const Function function = MakeFunction(
        {x}, MakeCall("nn.relu", {MakeCall("nn.dense", {x, RandomConstant({64, 240}, 31 + i, -0.1, 0.1)})}));
    InferType(function);
    auto compiled = Dnnl().RelayToRuntime({function, PlainLayouts(1, 1), 1});
    ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
    partitions.push_back(*compiled);
    inputs.push_back(conformance::RandomTensor({33, 240}, kFloat32, -1, 1, 41 + i));
    wanted.push_back(Evaluate(function, std::vector<Tensor>{inputs.back()})[0]);
    results.push_back(Tensor::Zeros({33, 64}, kFloat32));
    workspaces.push_back(Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes)}, kUInt8));
  }
  EXPECT_EQ(partitions[0].blob, partitions[1].blob);
  for (size_t i = 0; i < kKernels; ++i) {
    kernels.push_back(GetKernelLoader("dnnl").Load({partitions[i].blob, partitions[i].constants, 1}));
    void* input = inputs[i].raw();
    void* output = results[i].raw();
    kernels.back()->Bind({&input, 1}, {&output, 1}, workspaces[i].raw());
  }
  std::vector<std::thread> threads;
  for (const auto& kernel : kernels) {
    threads.emplace_back([&kernel] {
      for (int run = 0; run < 50; ++run) kernel->Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kKernels; ++i) {
    for (int64_t e = 0; e < wanted[i].num_elements(); ++e) ASSERT_NEAR(results[i].At(e), wanted[i].At(e), 1e-4) << i;
  }
}

}  // namespace
}  // namespace collage
