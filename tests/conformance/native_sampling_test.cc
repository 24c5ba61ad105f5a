// native_sampling_test.cc: native image.grid_sample and nn.lrn in both layouts and all of their modes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/conformance.h"

namespace collage {
namespace {

using conformance::ExpectAgrees;
using conformance::Input;

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

constexpr Layout kLayouts[] = {Layout::kPlain, Layout::kChannelsLast};

TEST(NativeSamplingTest, GridsInAllModes) {
  for (const char* method : {"nearest", "bilinear", "bicubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool aligned : {false, true}) {
        for (const Layout layout : kLayouts) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", method, padding, aligned, ToString(layout)));
          const Var data = Input("data", {2, 11, 5, 6});
          const Var grid = Input("grid", {2, 2, 3, 10});
          const Expr sampled = MakeCall("image.grid_sample", {data, grid},
                                        {{"method", method}, {"padding_mode", padding}, {"align_corners", aligned}});
          // Places up to three times as far out as the data's edges.
          ExpectAgrees(Native(), MakeFunction({data, grid}, sampled),
                       {.layouts = {{layout, layout}, {layout}}, .low = -3, .high = 3});
        }
      }
    }
  }
}

TEST(NativeSamplingTest, GridsOfVolumesAndOfSinglePixels) {
  const Var data = Input("data", {1, 3, 4, 5, 6});
  const Var grid = Input("grid", {1, 3, 2, 3, 5});
  for (const char* padding : {"zeros", "border", "reflection"}) {
    ExpectAgrees(Native(),
                 MakeFunction({data, grid}, MakeCall("image.grid_sample", {data, grid}, {{"padding_mode", padding}})),
                 {.low = -1.5, .high = 1.5});
    const Var pixel = Input("data", {1, 3, 1, 1});
    const Var places = Input("grid", {1, 2, 4, 9});
    ExpectAgrees(
        Native(),
        MakeFunction({pixel, places}, MakeCall("image.grid_sample", {pixel, places}, {{"padding_mode", padding}})),
        {.low = -1.5, .high = 1.5});
  }
}

// The first lanes are of channels that there are not.
TEST(NativeSamplingTest, GridsBehindPaddedChannels) {
  const Var data = Input("data", {1, 3, 4, 5});
  const Var grid = Input("grid", {1, 2, 3, 4});
  const Expr sampled = MakeCall("image.grid_sample", {data, grid});
  using V = AttrValue::List;
  const V widths{V{0, 0}, V{2, 2}, V{0, 0}, V{0, 1}};
  const Expr padded = MakeCall("nn.pad", {sampled, MakeScalar(0, kFloat32)}, {{"pad_width", widths}});
  for (const Layout layout : kLayouts) {
    SCOPED_TRACE(ToString(layout));
    ExpectAgrees(Native(), MakeFunction({data, grid}, padded),
                 {.layouts = {{layout, layout}, {layout}}, .low = -1.2, .high = 1.2});
  }
}

TEST(NativeSamplingTest, LocalResponseNormalisation) {
  for (const Layout layout : kLayouts) {
    for (const int size : {1, 2, 5, 9}) {
      for (const double beta : {0.5, 0.75, 1.0, 0.6}) {
        SCOPED_TRACE(fmt::format("{} size {} beta {}", ToString(layout), size, beta));
        const Var x = Input("x", {2, 7, 3, 11});
        const Expr lrn = MakeCall("nn.lrn", {x}, {{"size", size}, {"alpha", 0.3}, {"beta", beta}, {"bias", 1.5}});
        ExpectAgrees(Native(), MakeFunction({x}, lrn), {.layouts = {{layout}, {layout}}, .tolerance = 1e-5});
      }
    }
  }
  const Var x = Input("x", {4, 20}, kFloat64);
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("nn.lrn", {MakeCall("nn.relu", {x})}, {{"alpha", 0.5}})),
               {.tolerance = 1e-9});
}

}  // namespace
}  // namespace collage
