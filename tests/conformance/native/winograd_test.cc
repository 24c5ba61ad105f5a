// native_winograd_test.cc: Winograd's convolutions: the transforms in exact arithmetic, the choice of algorithm, and
// kernels against the reference at the edges of what tiles are: sizes, paddings, channels, layouts, threads, epilogues.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/native/description/winograd_model.h"
#include "backends/native/description/winograd_transforms.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using native::PerAxis;
using native::PlainConvolution;
using native::ProductMachine;
using native::WinogradTransforms;
using native::WinogradTransformsFor;
using V = std::vector<int64_t>;

// ---- transforms ----

constexpr int kTiles[] = {2, 4};
constexpr int kTaps[] = {3, 5, 7};

TEST(WinogradTransformsTest, ComputeFilteringExactly) {
  // Result i of taps g and data d is the sum of g[k] d[i + k]: for each product of a tap and a number of the data, the
  // matrices must say 1 there and 0 elsewhere. What is left is rounding, of sums in double of numbers that are up to as
  // large as the amplification.
  for (const int tile : kTiles) {
    for (const int taps : kTaps) {
      const WinogradTransforms& of = WinogradTransformsFor(tile, taps);
      const auto side = static_cast<size_t>(of.side());
      for (size_t i = 0; i < static_cast<size_t>(tile); ++i) {
        for (size_t k = 0; k < static_cast<size_t>(taps); ++k) {
          for (size_t l = 0; l < side; ++l) {
            double sum = 0;
            for (size_t p = 0; p < side; ++p) sum += of.result[i][p] * of.taps[p][k] * of.data[p][l];
            EXPECT_NEAR(sum, l == i + k ? 1 : 0, 1e-12)
                << "tile " << tile << ", " << taps << " taps: result " << i << ", tap " << k << ", " << l;
          }
        }
      }
    }
  }
}

TEST(WinogradTransformsTest, KernelsMultiplyWithWhatFloatsHold) {
  for (const int tile : kTiles) {
    for (const int taps : kTaps) {
      const WinogradTransforms& of = WinogradTransformsFor(tile, taps);
      for (const native::Matrix* matrix : {&of.data, &of.result}) {
        for (const std::vector<double>& row : *matrix) {
          for (const double value : row) EXPECT_EQ(static_cast<double>(static_cast<float>(value)), value);
        }
      }
    }
  }
}

TEST(WinogradTransformsTest, TapsAreTransformedAlongAllAxes) {
  // Two filters of 1x3x5 taps, one next to the other.
  const native::AxisTransforms axes{&WinogradTransformsFor(1, 1), &WinogradTransformsFor(4, 3),
                                    &WinogradTransformsFor(2, 5)};
  std::vector<double> taps(30);
  for (size_t i = 0; i < taps.size(); ++i) taps[i] = static_cast<double>((i * 7) % 11) - 5;
  const std::vector<double> got = native::TransformTaps(axes, taps, 2);
  ASSERT_EQ(got.size(), 6U * 6 * 2);
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < 6; ++j) {
      for (size_t filter = 0; filter < 2; ++filter) {
        double want = 0;
        for (size_t a = 0; a < 3; ++a) {
          for (size_t b = 0; b < 5; ++b)
            want += axes[1]->taps[i][a] * taps[(a * 5 + b) * 2 + filter] * axes[2]->taps[j][b];
        }
        EXPECT_NEAR(got[(i * 6 + j) * 2 + filter], want, 1e-12);
      }
    }
  }
}

TEST(WinogradTransformsTest, ErrorsGrowByAKnownFactorAtMost) {
  const auto factor = [](const V& taps, const V& tiles) {
    native::AxisTransforms axes{};
    for (size_t a = 0; a < native::kAxes; ++a) {
      axes[a] = &WinogradTransformsFor(static_cast<int>(tiles[a]), static_cast<int>(taps[a]));
    }
    return native::Amplification(axes);
  };
  EXPECT_DOUBLE_EQ(factor({1, 1, 1}, {1, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(factor({1, 3, 3}, {1, 2, 2}), 64.0 / 9);
  EXPECT_NEAR(factor({1, 3, 3}, {1, 4, 4}), 62.7, 0.1);
  EXPECT_NEAR(factor({3, 3, 3}, {2, 2, 2}), 19.0, 0.1);
  EXPECT_NEAR(factor({3, 3, 3}, {2, 4, 4}), 167, 1);
  EXPECT_NEAR(factor({3, 3, 3}, {4, 4, 4}), 496, 1);
  EXPECT_NEAR(factor({1, 5, 5}, {1, 2, 2}), 45, 1);
  EXPECT_NEAR(factor({1, 5, 5}, {1, 4, 4}), 301, 1);
  EXPECT_NEAR(factor({1, 1, 7}, {1, 1, 2}), 16.4, 0.1);
  EXPECT_NEAR(factor({1, 1, 7}, {1, 1, 4}), 44.3, 0.1);
}

// ---- the choice ----

TEST(WinogradModelTest, ChoosesByProductsWeightsAndTiles) {
  const ProductMachine machine;
  const auto chosen = [&](int64_t channels, int64_t size) {
    const auto plan = native::ChooseWinograd({1, channels, channels, {1, size, size}}, machine);
    return plan ? plan->tile : PerAxis{};
  };
  const PerAxis four{1, 4, 4};
  EXPECT_EQ(chosen(64, 56), four);
  EXPECT_EQ(chosen(128, 112), four);
  EXPECT_NE(chosen(512, 7), four) << "four tiles do not pay for weights of four times the size";
  EXPECT_EQ(chosen(512, 1), PerAxis{}) << "a single pixel";
  // What weights cost is shared by the images of a batch.
  const PlainConvolution one{1, 512, 512, {1, 7, 7}};
  PlainConvolution many = one;
  many.images = 32;
  const auto gain = [&](const PlainConvolution& conv) {
    return native::DirectCycles(conv, machine) / native::PlanWinograd(conv, machine, four).cycles;
  };
  EXPECT_GT(gain(many), 1.5 * gain(one));
}

TEST(WinogradModelTest, NothingIsTransformedAlongAxesOfOneTap) {
  const auto plan = native::ChooseWinograd({1, 128, 128, {1, 56, 56}, {1, 7, 1}}, {});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->tile[0], 1);
  EXPECT_GT(plan->tile[1], 1);
  EXPECT_EQ(plan->tile[2], 1);
  EXPECT_FALSE(native::HasWinograd({1, 128, 128, {1, 56, 56}, {1, 1, 1}}));
  EXPECT_FALSE(native::HasWinograd({1, 128, 128, {1, 56, 56}, {1, 2, 3}}));
}

TEST(WinogradModelTest, ErrorsStayWithinBounds) {
  const PlainConvolution wide{1, 512, 512, {1, 64, 64}, {1, 7, 7}};
  EXPECT_TRUE(native::IsWithinBounds(wide, {1, 2, 2}));
  EXPECT_FALSE(native::IsWithinBounds(wide, {1, 4, 4}));
  const auto plan = native::ChooseWinograd(wide, {});
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(native::IsWithinBounds(wide, plan->tile));
  const PlainConvolution deep{1, 64, 64, {16, 32, 32}, {3, 3, 3}};
  EXPECT_TRUE(native::IsWithinBounds(deep, {4, 4, 4}));
}

TEST(WinogradModelTest, ThreadsGetPartsOfTheChannelsWhereTilesAreFew) {
  ProductMachine machine;
  machine.threads = 4;
  const auto few = native::PlanWinograd({1, 512, 512, {1, 14, 14}}, machine, {1, 4, 4});
  EXPECT_GT(few.channel_parts, 1);
  const auto many = native::PlanWinograd({1, 64, 64, {1, 224, 224}}, machine, {1, 4, 4});
  EXPECT_EQ(many.channel_parts, 1);
  EXPECT_GE(56 * 56 / many.block, 4);
}

TEST(WinogradModelTest, TilesAreToldByTheLastAxes) {
  const PlainConvolution deep{1, 8, 8, {8, 8, 8}, {3, 3, 3}};
  EXPECT_EQ(native::TilesTold(deep, 4), (PerAxis{4, 4, 4}));
  EXPECT_EQ(native::TilesTold(deep, 244), (PerAxis{2, 4, 4}));
  EXPECT_EQ(native::TilesTold(deep, 24), (PerAxis{2, 2, 4}));
  const PlainConvolution flat{1, 8, 8, {1, 8, 8}, {1, 3, 1}};
  EXPECT_EQ(native::TilesTold(flat, 244), (PerAxis{1, 4, 1}));
  EXPECT_EQ(native::TilesTold(flat, 24), (PerAxis{1, 2, 1}));
}

// ---- kernels ----

/// The native toolchain with tiles of side `tile`.
std::unique_ptr<const Toolchain> Tiles(int tile) {
  return BuiltinToolchain("native").WithOptions({{"accuracy", "standard"}, {"winograd_tile", tile}});
}
std::unique_ptr<const Toolchain> Exact() {
  return BuiltinToolchain("native").WithOptions({{"accuracy", "exact"}, {"winograd_tile", 0}});
}

/// Of results, relative to the largest. 3x3 layers of up to 128 channels show errors of up to 3e-7 and 6e-6.
double ToleranceOf(int tile) { return tile == 2 ? 3e-6 : 2e-5; }
/// Of others: a small part of what their amplification allows.
constexpr double kWideTolerance = 1e-4;

struct Layer {
  Shape data;
  int64_t channels;
  V padding = {1, 1};
  Shape taps = {3, 3};
};

Expr Convolution(const Expr& x, const Layer& layer, uint32_t seed = 3) {
  Shape weight{layer.channels, layer.data[1]};
  weight.insert(weight.end(), layer.taps.begin(), layer.taps.end());
  return MakeCall(fmt::format("nn.conv{}d", layer.taps.size()), {x, RandomConstant(weight, seed)},
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
  for (const int tile : kTiles) {
    SCOPED_TRACE(fmt::format("tiles of {}", tile));
    const auto toolchain = Tiles(tile);
    EXPECT_EQ(Positions(*toolchain, function), (tile + 2) * (tile + 2));
    options.tolerance = ToleranceOf(tile);
    ExpectAgrees(*toolchain, function, options);
  }
}

/// The same for any taps and tiles, of an axis each.
void ExpectAgreesWith(const V& tiles, const Layer& layer, Options options = {}) {
  SCOPED_TRACE(fmt::format("{} to {}, taps {}, padded by {}, tiles of {}", ToString(layer.data), layer.channels,
                           ToString(layer.taps), fmt::join(layer.padding, " "), fmt::join(tiles, "x")));
  int told = 0;
  int64_t positions = 1;
  for (size_t d = 0; d < tiles.size(); ++d) {
    told = told * 10 + static_cast<int>(tiles[d]);
    if (layer.taps[d] > 1) positions *= tiles[d] + layer.taps[d] - 1;
  }
  const auto toolchain = Tiles(told);
  const Var x = Input("x", layer.data);
  const Function function = MakeFunction({x}, Convolution(x, layer));
  EXPECT_EQ(Positions(*toolchain, function), positions);
  options.tolerance = kWideTolerance;
  ExpectAgrees(*toolchain, function, options);
}

/// Tiles of 2 and 4 in all mixtures over `axes` axes.
std::vector<V> Mixtures(size_t axes) {
  std::vector<V> all{{}};
  for (size_t d = 0; d < axes; ++d) {
    std::vector<V> longer;
    for (const V& tiles : all) {
      for (const int tile : kTiles) {
        longer.push_back(tiles);
        longer.back().push_back(tile);
      }
    }
    all = longer;
  }
  return all;
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

TEST(NativeWinogradTest, DataAndTapsOfSixteenBits) {
  // Results are rounded to their type, by far more than sums are.
  for (const DataType dtype : {kFloat16, kBFloat16}) {
    for (const int tile : kTiles) {
      for (const bool has_more : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, tiles of {}, with more {}", dtype.ToString(), tile, has_more));
        const Var x = Input("x", {1, 24, 9, 11}, dtype);
        const Expr data = has_more ? MakeCall("nn.relu", {x}) : Expr(x);
        const Constant weights = MakeConstant(RandomTensor({40, 24, 3, 3}, dtype, -1, 1, 3));
        Expr result = MakeCall("nn.conv2d", {data, weights}, {{"padding", V{1, 1}}});
        if (has_more) result = MakeCall("nn.relu", {MakeCall("add", {result, result})});
        const Function function = MakeFunction({x}, result);
        const auto toolchain = Tiles(tile);
        EXPECT_EQ(Positions(*toolchain, function), (tile + 2) * (tile + 2));
        for (const Layout layout : kAny) {
          ExpectAgrees(*toolchain, function,
                       {.layouts = BoundaryLayouts{{layout}, {layout}}, .tolerance = dtype == kFloat16 ? 2e-3 : 2e-2});
        }
      }
    }
  }
}

TEST(NativeWinogradTest, ThreeAxes) {
  for (const V& tiles : Mixtures(3)) ExpectAgreesWith(tiles, {{2, 5, 3, 9, 7}, 20, {0, 1, 2}, {3, 3, 3}});
  const std::vector<Layer> layers{
      {{1, 8, 8, 8, 8}, 16, {1, 1, 1}, {3, 3, 3}},
      {{1, 3, 5, 4, 6}, 8, {1, 0, 2, 0, 3, 1}, {3, 3, 3}},
      {{1, 17, 1, 1, 1}, 33, {1, 1, 1}, {3, 3, 3}},
  };
  for (const Layer& layer : layers) {
    ExpectAgreesWith({2, 4, 4}, layer);
    ExpectAgreesWith({4, 2, 2}, layer);
  }
}

TEST(NativeWinogradTest, ThreeAxesOfWhichSomeHaveOneTap) {
  // Those of one tap may be padded, too.
  for (const Shape& taps : {Shape{1, 3, 3}, {3, 1, 1}, {1, 1, 3}, {3, 1, 3}, {3, 3, 1}, {1, 5, 1}, {1, 7, 3}}) {
    ExpectAgreesWith({4, 2, 4}, {{1, 7, 5, 9, 6}, 18, {1, 1, 1}, taps});
    ExpectAgreesWith({2, 4, 2}, {{2, 7, 8, 4, 7}, 18, {2, 1, 3, 0, 2, 4}, taps});
  }
}

TEST(NativeWinogradTest, OneAxis) {
  for (const int64_t taps : kTaps) {
    for (const int64_t tile : kTiles) {
      ExpectAgreesWith({tile}, {{1, 8, 40}, 16, {taps / 2}, {taps}});
      ExpectAgreesWith({tile}, {{3, 5, 13}, 9, {0, 4}, {taps}});
      ExpectAgreesWith({tile}, {{1, 5, taps}, 33, {0}, {taps}});
      ExpectAgreesWith({tile, tile}, {{1, 20, 11, 17}, 24, {0, taps / 2}, {1, taps}});
      ExpectAgreesWith({tile, tile}, {{2, 20, 17, 6}, 24, {taps / 2, 0}, {taps, 1}});
      ExpectAgreesWith({tile, tile}, {{1, 9, 10, 15}, 8, {3, 1, 0, 2}, {taps, 1}});
    }
  }
}

TEST(NativeWinogradTest, WideTapsOfTwoAxes) {
  for (const V& tiles : Mixtures(2)) {
    ExpectAgreesWith(tiles, {{1, 16, 13, 10}, 24, {2, 2}, {5, 5}});
    ExpectAgreesWith(tiles, {{2, 6, 9, 7}, 10, {0, 3, 2, 1}, {5, 3}});
    ExpectAgreesWith(tiles, {{1, 6, 8, 12}, 10, {1, 3}, {3, 7}});
  }
  ExpectAgreesWith({2, 2}, {{1, 6, 15, 9}, 10, {3, 3}, {7, 7}});
}

TEST(NativeWinogradTest, AnyShape) {
  uint32_t state = 20;
  const auto random = [&](int64_t least, int64_t most) {
    state = state * 1664525U + 1013904223U;
    return least + static_cast<int64_t>(state >> 8U) % (most - least + 1);
  };
  for (int turn = 0; turn < 24; ++turn) {
    const auto axes = static_cast<size_t>(random(1, 3));
    Layer layer{{random(1, 2), random(1, 40)}, random(1, 70), {}, {}};
    V tiles;
    while (layer.taps.size() < axes) {
      layer.taps.push_back(random(0, 3) == 0 ? 1 : random(0, 2) == 0 ? 5 : 3);
      tiles.push_back(random(1, 2) * 2);
    }
    layer.taps.back() = std::max<int64_t>(layer.taps.back(), 3);
    // Within bounds: not two axes of five taps and a tile of 4 besides another.
    if (axes == 3) std::fill(layer.taps.begin(), layer.taps.end() - 1, std::min<int64_t>(layer.taps[0], 3));
    if (axes == 3) tiles[1] = 2;
    for (size_t d = 0; d < 2 * axes; ++d) layer.padding.push_back(random(0, layer.taps[d % axes] / 2 + 1));
    for (size_t d = 0; d < axes; ++d) layer.data.push_back(random(layer.taps[d], axes == 3 ? 9 : 20));
    const Layout in = kAny[random(0, 1)];
    ExpectAgreesWith(tiles, layer,
                     {.layouts = {{in}, {kAny[random(0, 1)]}}, .num_threads = static_cast<int>(random(1, 2))});
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

TEST(NativeWinogradTest, EpiloguesOverThreeAxes) {
  const Layer layer{{1, 16, 5, 7, 6}, 20, {1, 1, 1}, {3, 3, 3}};
  const Var x = Input("x", layer.data);
  const Var residual = Input("residual", {1, 20, 5, 7, 6});
  const Expr sum = Plus(Plus(Convolution(x, layer), RandomConstant({20, 1, 1, 1}, 5)), residual);
  const Function function = MakeFunction({x, residual}, MakeCall("nn.relu", {sum}));
  for (const Layout layout : kAny) {
    for (const int threads : {1, 2}) {
      const Options options{
          .layouts = {{layout, layout}, {layout}}, .num_threads = threads, .tolerance = kWideTolerance};
      ExpectAgrees(*Tiles(244), function, options);
    }
  }
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
  EXPECT_EQ(positions(*Tiles(4), layer, {}, {64, 64, 3, 2}), 1) << "two taps";
  EXPECT_EQ(positions(*Tiles(4), layer, {}, {64, 64, 7, 7}), 1) << "errors beyond bounds";
  EXPECT_EQ(positions(*Tiles(4), layer, {}, {64, 64, 1, 1}), 1);
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
  EXPECT_NE(with("standard", 244)->Probe().version, with("standard", 4)->Probe().version);
  for (const int tile : {3, -2, 45, 404, 2222}) EXPECT_THROW(with("standard", tile), Error) << tile;
  EXPECT_THROW(with("exact", 4), Error);
}

}  // namespace
}  // namespace collage
