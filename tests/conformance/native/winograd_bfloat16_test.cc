// native_winograd_bfloat16_test.cc: Winograd's convolutions whose products are of bfloat16: to the last bit where there
// is nothing to round, within a stated tolerance of the reference elsewhere; the choice of algorithm, and what bars it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "backends/native/description/winograd_model.h"
#include "backends/native/description/winograd_transforms.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "support/machine.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using native::PerAxis;
using native::PlainConvolution;
using native::WinogradTransformsFor;
using V = std::vector<int64_t>;

constexpr PerAxis kDirect{};
constexpr Layout kAny[] = {Layout::kPlain, Layout::kChannelsLast};

// ---- errors, and the choice ----

PlainConvolution Narrow(PlainConvolution conv) {
  conv.in_bfloat16 = true;
  return conv;
}

/// 3x3 taps on an image of a square.
PlainConvolution Square(int64_t channels, int64_t size) { return {1, channels, channels, {1, size, size}}; }

PerAxis Chosen(const PlainConvolution& conv) {
  native::ProductMachine machine;
  machine.lanes = 16;
  machine.units = 1;
  machine.tile_rows = 12;
  machine.tile_width = 32;
  const auto plan = native::ChooseWinograd(conv, machine);
  return plan ? plan->tile : kDirect;
}

TEST(WinogradTransformsTest, ErrorsOfRoundedFactorsGrowByAKnownFactor) {
  const auto factor = [](const V& taps, const V& tiles) {
    native::AxisTransforms axes{};
    for (size_t a = 0; a < native::kAxes; ++a) {
      axes[a] = &WinogradTransformsFor(static_cast<int>(tiles[a]), static_cast<int>(taps[a]));
    }
    return native::TypicalAmplification(axes);
  };
  EXPECT_DOUBLE_EQ(factor({1, 1, 1}, {1, 1, 1}), 1);
  EXPECT_NEAR(factor({1, 3, 3}, {1, 2, 2}), 5.0 / 3, 1e-9);
  EXPECT_NEAR(factor({1, 3, 3}, {1, 4, 4}), 4.8, 0.1);
  EXPECT_NEAR(factor({3, 3, 3}, {2, 2, 2}), 2.2, 0.1);
  EXPECT_NEAR(factor({1, 1, 3}, {1, 1, 4}), 2.2, 0.1);
  EXPECT_NEAR(factor({1, 1, 5}, {1, 1, 2}), 2.3, 0.1);
  EXPECT_NEAR(factor({1, 1, 7}, {1, 1, 2}), 5.0, 0.1);
}

TEST(WinogradModelTest, FewerTilesAreWorthTheErrorsOfBFloat16) {
  EXPECT_EQ(Chosen(Square(128, 56)), (PerAxis{1, 4, 4}));
  EXPECT_EQ(Chosen(Narrow(Square(128, 56))), (PerAxis{1, 2, 2}));
  EXPECT_EQ(Chosen(Narrow({1, 64, 64, {16, 32, 32}, {3, 3, 3}})), (PerAxis{2, 2, 2}));
  EXPECT_EQ(Chosen(Narrow({1, 128, 128, {1, 1, 1024}, {1, 1, 3}})), (PerAxis{1, 1, 4}));
  EXPECT_EQ(Chosen(Narrow({1, 128, 128, {1, 1, 1024}, {1, 1, 5}})), (PerAxis{1, 1, 2}));
  EXPECT_EQ(Chosen(Narrow({1, 128, 128, {1, 56, 56}, {1, 5, 5}})), kDirect);
  EXPECT_EQ(Chosen(Narrow({1, 128, 128, {1, 17, 17}, {1, 1, 7}})), kDirect);
  // Who asks for others gets them, within the bounds that float32 has, too.
  EXPECT_TRUE(native::IsWithinBounds(Narrow(Square(128, 56)), {1, 4, 4}));
  EXPECT_FALSE(native::IsWithinBounds(Narrow({1, 64, 64, {1, 56, 56}, {1, 7, 7}}), {1, 4, 4}));
}

TEST(WinogradModelTest, ProductsOfBFloat16TakeHalfAsLongAndTransformsAsLong) {
  native::ProductMachine machine;
  machine.lanes = 16;
  machine.units = 1;
  machine.tile_rows = 12;
  machine.tile_width = 32;
  const auto direct = [&](const PlainConvolution& conv) { return native::DirectCycles(conv, machine); };
  const auto by_tiles = [&](const PlainConvolution& conv) {
    return native::PlanWinograd(conv, machine, {1, 2, 2}).cycles;
  };
  const PlainConvolution wide = Square(256, 28);
  EXPECT_NEAR(direct(Narrow(wide)) / direct(wide), 0.5, 0.05);
  const auto share = [&](const PlainConvolution& conv) { return by_tiles(Narrow(conv)) / by_tiles(conv); };
  EXPECT_GT(share(wide), 0.5);
  EXPECT_LT(share(wide), 0.7);
  EXPECT_GT(share(Square(16, 112)), share(wide) + 0.02) << "of few channels, more of the time is the transforms'";
  // No direct convolution in pairs has an odd number of channels.
  EXPECT_EQ(direct(Narrow(Square(17, 56))), direct(Square(17, 56)));
}

// ---- kernels ----

struct Layer {
  Shape data;
  int64_t channels;
  V padding = {1, 1};
  Shape taps = {3, 3};

  Shape weight() const {
    Shape shape{channels, data[1]};
    shape.insert(shape.end(), taps.begin(), taps.end());
    return shape;
  }
  std::string Name() const {
    return fmt::format("{} to {}, taps {}, padded by {}", ToString(data), channels, ToString(taps),
                       fmt::join(padding, " "));
  }
  Expr Convolve(const Expr& x, const Expr& weights) const {
    return MakeCall(fmt::format("nn.conv{}d", taps.size()), {x, weights}, {{"padding", padding}});
  }
};

/// In bfloat16, with such tiles, for `processor`: without, this one.
std::unique_ptr<const Toolchain> Tiles(int tile, const std::string& processor = "") {
  return ToolchainConfiguration(BuiltinToolchain("native"))
      .With("inference_precision", "bf16")
      .With("winograd_tile", tile)
      .With("mcpu", processor)
      .Make();
}

/// A processor that has the instruction.
constexpr char kProcessor[] = "znver4";

Result<LoweredPartition> Lowered(const Toolchain& toolchain, const Function& function) {
  InferType(function);
  return toolchain.RelayToTIR({function, PlainLayouts(function->params().size(), 1), 1});
}

/// The outermost dimension of packed taps: positions of a tile, of a direct convolution groups; 0 where nothing is
/// computed in bfloat16.
int64_t Positions(const Toolchain& toolchain, const Function& function) {
  const Result<LoweredPartition> lowered = Lowered(toolchain, function);
  if (!lowered.ok() || lowered->mlir.find("dpbf16ps") == std::string::npos) return 0;
  for (const Tensor& constant : lowered->constants) {
    if (constant.rank() == 4) return constant.shape()[0];
  }
  return 0;
}

class NativeWinogradInBFloat16 : public testing::Test {
 protected:
  void SetUp() override {
    if (std::ranges::find(ThisMachine().features, "avx512_bf16") == ThisMachine().features.end()) {
      GTEST_SKIP() << "this processor has no AVX512-BF16";
    }
  }

  /// Whole numbers below 2^8, whose transforms for tiles of 2 are such, too, are not rounded: nor are sums.
  static void ExpectExact(const Layer& layer, Options options = {}) {
    SCOPED_TRACE(layer.Name());
    const Tensor numbers = RandomTensor(layer.weight(), kInt8, -2, 2, 3).Cast(kFloat32);
    const Tensor weight = Tensor::Empty(layer.weight(), kFloat32);
    // Each axis halves.
    std::transform(numbers.data<float>(), numbers.data<float>() + NumElements(layer.weight()), weight.data<float>(),
                   [](float number) { return 8 * number; });
    const Var x = Input("x", layer.data, kInt8);
    const Function function =
        MakeFunction({x}, layer.Convolve(MakeCall("cast", {x}, {{"dtype", kFloat32}}), MakeConstant(weight)));
    const auto toolchain = Tiles(2);
    EXPECT_GT(Positions(*toolchain, function), 1);
    options.low = -8;
    options.high = 8;
    options.tolerance = 1e-7;
    ExpectAgrees(*toolchain, function, options);
  }

  /// Of the largest result: about 4 times what layers of networks show.
  static double ToleranceOf(const std::vector<int>& tiles, const Shape& taps) {
    double typical = 1;
    for (size_t d = 0; d < taps.size(); ++d) {
      if (taps[d] > 1) typical *= WinogradTransformsFor(tiles[d], static_cast<int>(taps[d])).TypicalAmplification();
    }
    return 8e-3 * typical;
  }
};

TEST_F(NativeWinogradInBFloat16, WholeNumbersAreExact) {
  const std::vector<Layer> layers{
      {{1, 8, 8, 8}, 16},
      {{1, 8, 9, 11}, 16, {0, 0}},
      {{2, 8, 7, 5}, 16},
      {{1, 8, 1, 1}, 16},
      {{1, 8, 6, 13}, 16, {2, 3}},
      {{1, 8, 10, 6}, 16, {0, 1, 2, 3}},
      {{1, 64, 14, 14}, 70},
      {{1, 16, 40}, 16, {1}, {3}},
      {{1, 12, 9, 10}, 24, {0, 1}, {1, 3}},
      {{1, 12, 9, 10}, 24, {1, 0}, {3, 1}},
      {{2, 6, 5, 6, 7}, 20, {1, 0, 2}, {3, 3, 3}},
      {{1, 32, 4, 6, 6}, 33, {1, 1, 1}, {3, 3, 3}},
      {{1, 6, 5, 6, 7}, 20, {1, 0, 1}, {3, 1, 3}},
  };
  for (const Layer& layer : layers) ExpectExact(layer);
}

TEST_F(NativeWinogradInBFloat16, OddChannelsAreFollowedByZeros) {
  for (const int64_t in : {1, 3, 7, 15, 17, 31, 33, 65}) ExpectExact({{1, in, 10, 9}, 24});
  for (const int64_t out : {1, 5, 17, 33, 65}) ExpectExact({{1, 19, 10, 9}, out});
  ExpectExact({{1, 5, 4, 7, 5}, 9, {1, 1, 1}, {3, 3, 3}});
}

TEST_F(NativeWinogradInBFloat16, LayoutsAndThreads) {
  for (const int64_t channels : {24, 27}) {
    for (const Layout in : kAny) {
      for (const Layout out : kAny) {
        for (const int threads : {1, 2}) {
          SCOPED_TRACE(fmt::format("{} to {}, {} threads", ToString(in), ToString(out), threads));
          ExpectExact({{2, channels, 27, 22}, 40}, {.layouts = {{in}, {out}}, .num_threads = threads});
        }
      }
    }
  }
}

TEST_F(NativeWinogradInBFloat16, AnyShape) {
  uint32_t state = 7;
  const auto random = [&](int64_t least, int64_t most) {
    state = state * 1664525U + 1013904223U;
    return least + static_cast<int64_t>(state >> 8U) % (most - least + 1);
  };
  for (int turn = 0; turn < 24; ++turn) {
    const auto axes = static_cast<size_t>(random(1, 3));
    Layer layer{{random(1, 2), random(1, 70)}, random(1, 70), {}, {}};
    std::vector<int> tiles;
    int told = 0;
    while (layer.taps.size() < axes) {
      layer.taps.push_back(random(0, 3) == 0 ? 1 : random(0, 2) == 0 && axes < 3 ? 5 : 3);
      tiles.push_back(static_cast<int>(random(1, 2)) * 2);
      // One axis of 4 is enough where errors are those of bfloat16.
      if (tiles.size() > 1) tiles.back() = 2;
      told = told * 10 + tiles.back();
    }
    layer.taps.back() = std::max<int64_t>(layer.taps.back(), 3);
    for (size_t d = 0; d < 2 * axes; ++d) layer.padding.push_back(random(0, layer.taps[d % axes] / 2 + 1));
    for (size_t d = 0; d < axes; ++d) layer.data.push_back(random(layer.taps[d], axes == 3 ? 9 : 20));
    SCOPED_TRACE(fmt::format("{}, tiles of {}", layer.Name(), told));
    const Layout in = kAny[random(0, 1)];
    const Options options{.layouts = {{in}, {kAny[random(0, 1)]}},
                          .num_threads = static_cast<int>(random(1, 2)),
                          .tolerance = ToleranceOf(tiles, layer.taps)};
    const Var x = Input("x", layer.data);
    const Function function = MakeFunction({x}, layer.Convolve(x, RandomConstant(layer.weight(), 3)));
    const auto toolchain = Tiles(told);
    EXPECT_GT(Positions(*toolchain, function), 1);
    ExpectAgrees(*toolchain, function, options);
  }
}

TEST_F(NativeWinogradInBFloat16, EpiloguesAreComputedInFloat32) {
  const Layer layer{{1, 32, 11, 10}, 20};
  const Var x = Input("x", layer.data);
  const Var residual = Input("residual", {1, 20, 11, 10});
  const Expr conv = layer.Convolve(MakeCall("nn.relu", {x}), RandomConstant(layer.weight(), 3, -0.1, 0.1));
  const Expr sum = Plus(Plus(conv, RandomConstant({20, 1, 1}, 5)), residual);
  for (const Layout layout : kAny) {
    ExpectAgrees(*Tiles(2), MakeFunction({x, residual}, MakeCall("tanh", {sum})),
                 {.layouts = {{layout, layout}, {layout}}, .tolerance = ToleranceOf({2, 2}, layer.taps)});
  }
}

TEST_F(NativeWinogradInBFloat16, DataAndResultsMayBeKeptSo) {
  const std::vector<Layer> layers{{{1, 24, 9, 11}, 20}, {{2, 27, 6, 7}, 33, {0, 1, 2, 1}}, {{1, 40, 13}, 16, {1}, {3}}};
  for (const Layer& layer : layers) {
    SCOPED_TRACE(layer.Name());
    const Var x = Input("x", layer.data);
    const Function function = MakeFunction({x}, layer.Convolve(x, RandomConstant(layer.weight(), 3)));
    for (const Layout in : {Layout::kPlainBFloat16, Layout::kChannelsLastBFloat16}) {
      for (const Layout out : {Layout::kChannelsLast, Layout::kChannelsLastBFloat16}) {
        for (const int threads : {1, 2}) {
          ExpectAgrees(
              *Tiles(2), function,
              {.layouts = {{in}, {out}}, .num_threads = threads, .tolerance = ToleranceOf({2, 2}, layer.taps)});
        }
      }
    }
  }
}

TEST(NativeWinogradChoiceInBFloat16, DataThatAreKeptSoAreReadWhereTheyLie) {
  const Layer layer{{1, 64, 28, 28}, 64};
  const Var x = Input("x", layer.data);
  const Function function = MakeFunction({x}, layer.Convolve(x, RandomConstant(layer.weight(), 3)));
  InferType(function);
  const auto workspace_bytes = [&](Layout in) {
    const Result<LoweredPartition> lowered =
        Tiles(2, kProcessor)->RelayToTIR({function, {{in}, {Layout::kChannelsLast}}, 1});
    return lowered.ok() ? lowered->workspace_bytes : 0;
  };
  EXPECT_GT(workspace_bytes(Layout::kChannelsLast), 0u);
  EXPECT_EQ(workspace_bytes(Layout::kChannelsLastBFloat16), workspace_bytes(Layout::kChannelsLast));
}

TEST(NativeWinogradChoiceInBFloat16, IsMadeByTheModelOrWhoIsAsked) {
  const auto with = [](const char* option, const AttrValue& value) {
    return ToolchainConfiguration(BuiltinToolchain("native"))
        .With("inference_precision", "bf16")
        .With("mcpu", kProcessor)
        .With(option, value)
        .Make();
  };
  const Layer layer{{1, 64, 28, 28}, 64};
  const Var x = Input("x", layer.data);
  const Function function = MakeFunction({x}, layer.Convolve(x, RandomConstant(layer.weight(), 3)));
  EXPECT_EQ(Positions(*Tiles(0, kProcessor), function), 16);
  EXPECT_EQ(Positions(*Tiles(4, kProcessor), function), 36);
  EXPECT_EQ(Positions(*with("schedule", "algorithm=direct"), function), 1);
  EXPECT_EQ(Positions(*with("schedule", "algorithm=winograd4"), function), 36);
  EXPECT_THROW(with("accuracy", "exact"), Error) << "what is exact is not in bfloat16";
  const Result<std::vector<std::string>> schedules = Tiles(0, kProcessor)->Schedules({function, PlainLayouts(1, 1), 1});
  ASSERT_TRUE(schedules.ok()) << schedules.reason().text;
  EXPECT_EQ(std::ranges::count(*schedules, "algorithm=direct"), 1);
  EXPECT_EQ(std::ranges::count(*schedules, "algorithm=winograd4"), 0) << "not worth its errors";
}

TEST(NativeWinogradChoiceInBFloat16, OddChannelsAreTakenWhereTheyAreTransformed) {
  const Var x = Input("x", {1, 33, 28, 28});
  const auto lowered = [&](const Shape& weight, const V& strides) {
    const Function function = MakeFunction(
        {x}, MakeCall("nn.conv2d", {x, RandomConstant(weight, 3)}, {{"padding", V{1, 1}}, {"strides", strides}}));
    return Lowered(*Tiles(2, kProcessor), function);
  };
  const Result<LoweredPartition> odd = lowered({64, 33, 3, 3}, {1, 1});
  ASSERT_TRUE(odd.ok()) << odd.reason().text;
  EXPECT_EQ(odd->constants.at(0).shape(), (Shape{16, 2, 17, 32})) << "17 pairs";
  EXPECT_EQ(lowered({64, 33, 3, 3}, {2, 2}).reason().text, "nothing in it is computed in bfloat16");
}

TEST(NativeWinogradChoiceInBFloat16, ProcessorsWithoutTheInstructionDecline) {
  const Layer layer{{1, 64, 28, 28}, 64};
  const Var x = Input("x", layer.data);
  const Function function = MakeFunction({x}, layer.Convolve(x, RandomConstant(layer.weight(), 3)));
  for (const char* processor : {"x86-64-v3", "skylake-avx512"}) {
    EXPECT_EQ(Lowered(*Tiles(0, processor), function).reason().text,
              "this processor has no products of bfloat16 (AVX512-BF16)");
  }
}

}  // namespace
}  // namespace collage
