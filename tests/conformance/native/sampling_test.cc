// native_sampling_test.cc: native image.grid_sample, deformable convolutions and nn.lrn in both layouts and all of
// their modes.
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

// Tables of positions are the first constants, and nothing lies before them.
TEST(NativeSamplingTest, TablesAreNotReadOutside) {
  const Var data = Input("data", {4, 7, 8, 1});
  const Var value = Input("value", {});
  using V = AttrValue::List;
  for (const char* method : {"nearest_neighbor", "linear"}) {
    const Expr resized = MakeCall("image.resize2d", {data}, {{"size", std::vector<int64_t>{7, 9}}, {"method", method}});
    const Expr padded = MakeCall("nn.pad", {resized, value}, {{"pad_width", V{V{3, 1}, V{0, 0}, V{90, 0}, V{90, 3}}}});
    const Expr turned = MakeCall("transpose", {padded}, {{"axes", std::vector<int64_t>{2, 0, 1, 3}}});
    for (const Expr& result : {padded, turned}) ExpectAgrees(Native(), MakeFunction({data, value}, result));
  }
}

// Taps of taps of taps, each computed in its place, would be thousands for an element: too much to compile.
TEST(NativeSamplingTest, SamplesOfSamples) {
  const Var data = Input("data", {2, 3, 5, 6});
  std::vector<Var> params{data};
  Expr sampled = MakeCall("nn.relu", {data});
  for (int i = 0; i < 4; ++i) {
    params.push_back(Input(fmt::format("grid{}", i), {2, 2, 4 + i, 7}));
    sampled = MakeCall("image.grid_sample", {MakeCall("exp", {sampled}), params.back()}, {{"method", "bicubic"}});
    if (i == 1) {
      sampled = MakeCall("image.resize2d", {sampled}, {{"size", std::vector<int64_t>{6, 9}}, {"method", "cubic"}});
    }
  }
  ExpectAgrees(Native(), MakeFunction(params, MakeCall("tanh", {sampled})), {.low = -1, .high = 1});
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

struct Deformable {
  int64_t images = 1, channels = 6, out = 4, groups = 1, deformable = 1;
  Shape size{7, 9}, kernel{3, 3};
  std::vector<int64_t> strides{1, 1}, padding{1, 1, 1, 1}, dilation{1, 1};
  bool has_mask = true;
  DataType dtype = kFloat32;
};

void ExpectDeformedAgrees(const Deformable& form) {
  const auto result = [&](size_t d) {
    const int64_t reach = (form.kernel[d] - 1) * form.dilation[d];
    return (form.size[d] + form.padding[d] + form.padding[d + 2] - reach - 1) / form.strides[d] + 1;
  };
  const int64_t moved = form.deformable * form.kernel[0] * form.kernel[1];
  const Var x = Input("x", {form.images, form.channels, form.size[0], form.size[1]}, form.dtype);
  std::vector<Var> params{x, Input("offset", {form.images, 2 * moved, result(0), result(1)}, form.dtype)};
  std::vector<Expr> args{
      params[0], params[1],
      MakeConstant(conformance::RandomTensor({form.out, form.channels / form.groups, form.kernel[0], form.kernel[1]},
                                             form.dtype, -1, 1, 3))};
  if (form.has_mask) {
    params.push_back(Input("mask", {form.images, moved, result(0), result(1)}, form.dtype));
    args.push_back(params.back());
  }
  const Expr deformed = MakeCall("nn.deformable_conv2d", args,
                                 {{"strides", form.strides},
                                  {"padding", form.padding},
                                  {"dilation", form.dilation},
                                  {"groups", form.groups},
                                  {"deformable_groups", form.deformable}});
  const Function function = MakeFunction(params, MakeCall("nn.relu", {deformed}));
  const double tolerance = form.dtype == kFloat16 ? 1e-2 : 1e-4;
  for (const Layout layout : kLayouts) {
    SCOPED_TRACE(ToString(layout));
    const std::vector<Layout> inputs(params.size(), layout);
    ExpectAgrees(Native(), function,
                 {.layouts = {inputs, {layout}}, .num_threads = 2, .tolerance = tolerance, .low = -2.5, .high = 2.5});
  }
}

TEST(NativeSamplingTest, ConvolutionsOfMovedTaps) {
  ExpectDeformedAgrees({});
  ExpectDeformedAgrees({.images = 2, .channels = 32, .out = 20, .has_mask = false});
  ExpectDeformedAgrees({.channels = 12, .groups = 2, .deformable = 3});
  ExpectDeformedAgrees({.channels = 32, .out = 32, .groups = 2, .deformable = 2, .dilation = {2, 1}});
  ExpectDeformedAgrees({.channels = 8, .out = 8, .groups = 8, .strides = {2, 3}, .padding = {2, 0, 1, 3}});
  ExpectDeformedAgrees({.channels = 5, .kernel = {1, 2}, .padding = {0, 0, 0, 0}, .dtype = kFloat64});
  ExpectDeformedAgrees({.size = {1, 1}, .dtype = kFloat16});
}

// What is moved by nothing is a convolution.
TEST(NativeSamplingTest, ConvolutionsWhoseTapsStay) {
  const Var x = Input("x", {1, 16, 12, 10});
  const Expr weight = MakeConstant(conformance::RandomTensor({8, 16, 3, 3}, kFloat32, -1, 1, 3));
  const Expr stay = MakeConstant(Tensor::Zeros({1, 18, 12, 10}, kFloat32));
  const Attrs same{{"padding", std::vector<int64_t>{1, 1, 1, 1}}};
  const Expr deformed = MakeCall("nn.deformable_conv2d", {x, stay, weight}, same);
  const Expr convolved = MakeCall("nn.conv2d", {x, weight}, same);
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("subtract", {deformed, convolved})), {.tolerance = 1e-5});
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
