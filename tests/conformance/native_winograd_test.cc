// native_winograd_test.cc: Winograd's convolutions: the transforms in exact arithmetic, the choice of algorithm, and
// kernels against the reference at the edges of what tiles are: sizes, paddings, channels, layouts, threads, epilogues.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "backends/native/compiler/winograd_model.h"
#include "backends/native/compiler/winograd_transforms.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using native::Convolution3x3;
using native::ProductMachine;
using native::WinogradTransforms;
using native::WinogradTransformsFor;
using V = std::vector<int64_t>;

// ---- transforms ----

TEST(WinogradTransformsTest, ComputeFilteringExactly) {
  // Result i of taps g and data d is the sum of g[k] d[i + k]: for each product of a tap and a number of the data, the
  // matrices must say 1 there and 0 elsewhere. In integers: G's rows come with divisors, and the others' numbers have
  // few binary digits.
  constexpr int64_t kDigits = 512;
  const auto whole = [](double value) {
    const auto scaled = static_cast<int64_t>(value * kDigits);
    EXPECT_EQ(static_cast<double>(scaled), value * kDigits);
    return scaled;
  };
  for (const int tile : {2, 4}) {
    const WinogradTransforms& of = WinogradTransformsFor(tile);
    const auto side = static_cast<size_t>(of.side());
    int common = 1;
    for (const int divisor : of.taps_divisors) common = std::lcm(common, divisor);
    for (size_t i = 0; i < static_cast<size_t>(tile); ++i) {
      for (size_t k = 0; k < 3; ++k) {
        for (size_t l = 0; l < side; ++l) {
          int64_t sum = 0;
          for (size_t p = 0; p < side; ++p) {
            sum += whole(of.result[i][p]) * of.taps[p][k] * whole(of.data[p][l]) * (common / of.taps_divisors[p]);
          }
          EXPECT_EQ(sum, l == i + k ? kDigits * kDigits * common : 0)
              << "tile " << tile << ", result " << i << ", tap " << k << ", " << l;
        }
      }
    }
  }
}

TEST(WinogradTransformsTest, TapsAreTransformedOnBothSides) {
  const float taps[] = {1, -2, 3, 0.5F, 4, -1, 2, 0, 7};
  for (const int tile : {2, 4}) {
    const WinogradTransforms& of = WinogradTransformsFor(tile);
    std::vector<double> got(static_cast<size_t>(of.positions()));
    native::TapsTransform(of).Apply(taps, got.data());
    for (size_t i = 0; i < of.taps.size(); ++i) {
      for (size_t j = 0; j < of.taps.size(); ++j) {
        double want = 0;
        for (size_t a = 0; a < 3; ++a) {
          for (size_t b = 0; b < 3; ++b) want += of.taps[i][a] * static_cast<double>(taps[a * 3 + b]) * of.taps[j][b];
        }
        want /= of.taps_divisors[i] * of.taps_divisors[j];
        EXPECT_NEAR(got[i * of.taps.size() + j], want, 1e-13);
      }
    }
  }
}

TEST(WinogradTransformsTest, ErrorsGrowByAKnownFactorAtMost) {
  EXPECT_DOUBLE_EQ(WinogradTransformsFor(2).Amplification(), 64.0 / 9);
  EXPECT_NEAR(WinogradTransformsFor(4).Amplification(), 62.7, 0.1);
}

// ---- the choice ----

TEST(WinogradModelTest, ChoosesByProductsWeightsAndTiles) {
  const ProductMachine machine;
  const auto chosen = [&](int64_t channels, int64_t size) {
    const auto plan = native::ChooseWinograd({1, channels, channels, size, size}, machine);
    return plan ? plan->tile : 0;
  };
  EXPECT_EQ(chosen(64, 56), 4);
  EXPECT_EQ(chosen(128, 112), 4);
  EXPECT_NE(chosen(512, 7), 4) << "four tiles do not pay for weights of four times the size";
  EXPECT_EQ(chosen(512, 1), 0) << "a single pixel";
  // What weights cost is shared by the images of a batch.
  const Convolution3x3 one{1, 512, 512, 7, 7};
  Convolution3x3 many = one;
  many.images = 32;
  const auto gain = [&](const Convolution3x3& conv) {
    return native::DirectCycles(conv, machine) / native::PlanWinograd(conv, machine, 4).cycles;
  };
  EXPECT_GT(gain(many), 1.5 * gain(one));
}

TEST(WinogradModelTest, ThreadsGetPartsOfTheChannelsWhereTilesAreFew) {
  ProductMachine machine;
  machine.threads = 4;
  const auto few = native::PlanWinograd({1, 512, 512, 14, 14}, machine, 4);
  EXPECT_GT(few.channel_parts, 1);
  const auto many = native::PlanWinograd({1, 64, 64, 224, 224}, machine, 4);
  EXPECT_EQ(many.channel_parts, 1);
  EXPECT_GE(56 * 56 / many.block, 4);
}

// ---- kernels ----

/// The native toolchain with tiles of side `tile`.
std::unique_ptr<const Toolchain> Tiles(int tile) {
  return BuiltinToolchain("native").WithOptions({{"accuracy", "standard"}, {"winograd_tile", tile}});
}
std::unique_ptr<const Toolchain> Exact() {
  return BuiltinToolchain("native").WithOptions({{"accuracy", "exact"}, {"winograd_tile", 0}});
}

/// Of results, relative to the largest. Layers of up to 128 channels show errors of up to 3e-7 and 6e-6.
double ToleranceOf(int tile) { return tile == 2 ? 3e-6 : 2e-5; }

struct Layer {
  Shape data;
  int64_t channels;
  V padding = {1, 1};
};

Expr Convolution(const Expr& x, const Layer& layer, uint32_t seed = 3) {
  return MakeCall("nn.conv2d", {x, RandomConstant({layer.channels, layer.data[1], 3, 3}, seed)},
                  {{"padding", layer.padding}});
}

constexpr Layout kAny[] = {Layout::kPlain, Layout::kChannelsLast};

/// The outermost dimension of packed taps: positions of a tile; groups of a direct convolution; 0 when they are no
/// constants.
int64_t Positions(const Toolchain& toolchain, const Function& function) {
  InferType(function);
  const auto lowered = toolchain.RelayToTIR({function, PlainLayouts(function->params().size(), 1), 1});
  EXPECT_TRUE(lowered.ok()) << lowered.reason().text;
  if (!lowered.ok()) return 0;
  for (const Tensor& constant : lowered->constants) {
    if (constant.rank() == 4) return constant.shape()[0];
  }
  return 0;
}

void ExpectTilesAgree(const Function& function, Options options = {}) {
  for (const int tile : {2, 4}) {
    SCOPED_TRACE(fmt::format("tiles of {}", tile));
    const auto toolchain = Tiles(tile);
    EXPECT_EQ(Positions(*toolchain, function), (tile + 2) * (tile + 2));
    options.tolerance = ToleranceOf(tile);
    ExpectAgrees(*toolchain, function, options);
  }
}

TEST(NativeWinogradTest, SizesAndPaddings) {
  const std::vector<Layer> layers{
      {{1, 8, 8, 8}, 16, {1, 1}},   {{1, 8, 9, 11}, 16, {0, 0}},       {{2, 8, 7, 5}, 16, {1, 1}},
      {{1, 8, 3, 3}, 16, {0, 0}},   {{1, 8, 1, 1}, 16, {1, 1}},        {{1, 8, 1, 9}, 16, {1, 0, 1, 2}},
      {{1, 8, 6, 13}, 16, {2, 3}},  {{1, 8, 10, 6}, 16, {0, 1, 2, 3}}, {{3, 4, 2, 17}, 8, {1, 1}},
      {{1, 8, 14, 14}, 16, {1, 1}},
  };
  for (const Layer& layer : layers) {
    SCOPED_TRACE(fmt::format("{} padded by {}", ToString(layer.data), fmt::join(layer.padding, " ")));
    const Var x = Input("x", layer.data);
    ExpectTilesAgree(MakeFunction({x}, Convolution(x, layer)));
  }
}

TEST(NativeWinogradTest, Channels) {
  for (const auto& [in, out] : {std::pair{1, 1}, {1, 64}, {3, 5}, {7, 24}, {17, 3}, {64, 33}, {40, 64}, {128, 20}}) {
    SCOPED_TRACE(fmt::format("{} to {}", in, out));
    const Layer layer{{1, in, 10, 9}, out};
    const Var x = Input("x", layer.data);
    ExpectTilesAgree(MakeFunction({x}, Convolution(x, layer)));
  }
}

TEST(NativeWinogradTest, LayoutsAndThreads) {
  const Layer layer{{2, 24, 27, 22}, 40};
  const Var x = Input("x", layer.data);
  for (const Layout in : kAny) {
    for (const Layout out : kAny) {
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} to {}, {} threads", ToString(in), ToString(out), threads));
        ExpectTilesAgree(MakeFunction({x}, Convolution(x, layer)), {.layouts = {{in}, {out}}, .num_threads = threads});
      }
    }
  }
}

TEST(NativeWinogradTest, ThreadsShareChannelsOfFewTiles) {
  for (const int64_t channels : {48, 61}) {
    const Layer layer{{1, 64, 6, 7}, channels};
    const Var x = Input("x", layer.data);
    ExpectTilesAgree(MakeFunction({x}, Convolution(x, layer)), {.num_threads = 2});
  }
}

TEST(NativeWinogradTest, Epilogues) {
  const Layer layer{{1, 16, 11, 10}, 20};
  const Var x = Input("x", layer.data);
  const Var residual = Input("residual", {1, 20, 11, 10});
  const Expr biased = Plus(Convolution(x, layer), RandomConstant({20, 1, 1}, 5));
  const Expr relu = MakeCall("nn.relu", {Plus(biased, residual)});
  const Expr swish = Mul(biased, MakeCall("sigmoid", {biased}));
  for (const Layout layout : kAny) {
    ExpectTilesAgree(MakeFunction({x, residual}, relu), {.layouts = {{layout, layout}, {layout}}});
    ExpectTilesAgree(MakeFunction({x}, swish), {.layouts = {{layout}, {layout}}});
  }
  const Layout last = Layout::kChannelsLast;
  ExpectTilesAgree(MakeFunction({x, residual}, relu), {.layouts = {{last, last}, {last}}, .num_threads = 2});
}

TEST(NativeWinogradTest, DataMayBeComputedAndResultsReadTwice) {
  const Layer layer{{1, 16, 11, 10}, 16};
  const Var x = Input("x", layer.data);
  const Expr before = MakeCall("nn.relu", {Plus(x, RandomConstant({16, 1, 1}, 6))});
  const Expr first = MakeCall("nn.relu", {Convolution(before, layer)});
  const Expr second =
      MakeCall("nn.conv2d", {first, RandomConstant({16, 16, 3, 3}, 8, -0.1, 0.1)}, {{"padding", V{1, 1}}});
  ExpectTilesAgree(MakeFunction({x}, Plus(second, first)));
}

TEST(NativeWinogradTest, LayersOfNetworksAgree) {
  const Layer layer{{1, 64, 28, 28}, 64};
  const Var x = Input("x", layer.data);
  const Function function = MakeFunction({x}, Convolution(x, layer));
  EXPECT_EQ(Positions(BuiltinToolchain("native"), function), 36) << "chosen where nobody asks for it";
  ExpectTilesAgree(function, {.layouts = {{Layout::kChannelsLast}, {Layout::kChannelsLast}}});
}

TEST(NativeWinogradTest, WhatIsExactOrNoFilteringIsDirect) {
  const auto positions = [](const Toolchain& toolchain, const Layer& layer, const Attrs& attrs, Shape weight) {
    const Var x = Input("x", layer.data);
    return Positions(toolchain, MakeFunction({x}, MakeCall("nn.conv2d", {x, RandomConstant(weight, 1)}, attrs)));
  };
  const Layer layer{{1, 64, 28, 28}, 64};
  const Shape weight{64, 64, 3, 3};
  EXPECT_EQ(positions(*Tiles(4), layer, {}, weight), 36);
  EXPECT_EQ(positions(*Exact(), layer, {}, weight), 1);
  EXPECT_EQ(positions(*Tiles(4), layer, {{"strides", V{2, 2}}}, weight), 1);
  EXPECT_EQ(positions(*Tiles(4), layer, {{"dilation", V{2, 2}}}, weight), 1);
  EXPECT_EQ(positions(*Tiles(4), layer, {{"groups", 2}}, {64, 32, 3, 3}), 2) << "a part for each group";
  EXPECT_EQ(positions(*Tiles(4), layer, {}, {64, 64, 3, 1}), 1);
  const Var x = Input("x", {1, 16, 8, 8});
  const Var taps = Input("taps", {16, 16, 3, 3});
  EXPECT_EQ(Positions(*Tiles(4), MakeFunction({x, taps}, MakeCall("nn.conv2d", {x, taps}))), 0) << "no constants";
}

TEST(NativeWinogradTest, WeightsAreExchanged) {
  const Layer layer{{1, 16, 9, 9}, 16};
  const auto toolchain = Tiles(4);
  const auto request = [&](uint32_t seed) {
    const Var x = Input("x", layer.data);
    const Function function = MakeFunction({x}, Convolution(x, layer, seed));
    InferType(function);
    return PartitionRequest{function, PlainLayouts(1, 1), 1};
  };
  const Result<CompiledPartition> compiled = toolchain->RelayToRuntime(request(1));
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const Result<std::vector<Tensor>> constants = toolchain->UpdateConstants(request(2), *compiled);
  ASSERT_TRUE(constants.ok()) << constants.reason().text;
  EXPECT_TRUE(BitEqual(constants->at(0), toolchain->RelayToTIR(request(2))->constants.at(0)));
  EXPECT_FALSE(BitEqual(constants->at(0), compiled->constants.at(0)));
}

TEST(NativeWinogradTest, OptionsAreChecked) {
  const Toolchain& native = BuiltinToolchain("native");
  const auto with = [&](const char* accuracy, int tile) {
    return native.WithOptions({{"accuracy", accuracy}, {"winograd_tile", tile}});
  };
  EXPECT_EQ(with("standard", 0)->Probe().version, native.Probe().version);
  EXPECT_NE(with("exact", 0)->Probe().version, native.Probe().version) << "its times are others";
  EXPECT_NE(with("standard", 2)->Probe().version, with("standard", 4)->Probe().version);
  EXPECT_THROW(with("loose", 0), Error);
  EXPECT_THROW(with("standard", 3), Error);
  EXPECT_THROW(with("exact", 4), Error);
}

}  // namespace
}  // namespace collage
