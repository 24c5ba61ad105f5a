// native_pool_test.cc: native pools, channels-last and of planes: windows that overlap, reach over the edges, are
// larger than the data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

void Try(const std::string& op, const Shape& shape, const Attrs& attrs, DataType dtype = kFloat32,
         int num_threads = 1) {
  const Var x = conformance::Input("x", shape, dtype);
  const Function function = MakeFunction({x}, MakeCall(op, {x}, attrs));
  InferType(function);
  const Layout last = Layout::kChannelsLast;
  const Layout plain = Layout::kPlain;
  const bool is_float = dtype.is_floating();
  std::vector<std::pair<Layout, Layout>> layouts{{last, last}, {plain, plain}};
  if (num_threads > 1) layouts.insert(layouts.end(), {{plain, last}, {last, plain}});
  for (const auto& [from, to] : layouts) {
    SCOPED_TRACE(fmt::format("{} of {}, layouts {} and {}", op, ToString(x->checked_type()), static_cast<int>(from),
                             static_cast<int>(to)));
    conformance::ExpectAgrees(conformance::BuiltinToolchain("native"), function,
                              {.layouts = {{from}, {to}},
                               .num_threads = num_threads,
                               .tolerance = dtype == kFloat16 ? 1e-2 : 1e-6,
                               .low = is_float ? -1.0 : -100,
                               .high = is_float ? 1.0 : 100});
  }
}

Attrs Window(V size, V strides, V padding) {
  return {{"pool_size", std::move(size)}, {"strides", std::move(strides)}, {"padding", std::move(padding)}};
}

TEST(NativePoolTest, WindowsOfAnImage) {
  const std::vector<Attrs> windows{
      Window({3, 3}, {1, 1}, {1, 1}),       Window({3, 3}, {2, 2}, {1, 1}),   Window({2, 2}, {2, 2}, {0, 0}),
      Window({5, 5}, {1, 1}, {2, 2}),       Window({7, 3}, {1, 2}, {3, 0}),   Window({1, 4}, {1, 1}, {0, 3}),
      Window({13, 13}, {1, 1}, {6, 6}),     Window({2, 2}, {3, 3}, {0, 0}),   Window({9, 2}, {2, 1}, {4, 1}),
      Window({2, 3}, {1, 1}, {1, 0, 0, 2}), Window({3, 20}, {1, 1}, {1, 10}),
  };
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    for (const Attrs& window : windows) {
      Try(op, {2, 19, 11, 29}, window);
      Try(op, {1, 32, 14, 10}, window, kFloat32, 2);
    }
    for (const Shape& shape : {Shape{1, 5, 1, 1}, {1, 17, 2, 1}, {1, 16, 1, 7}, {2, 48, 4, 2}, {0, 16, 5, 5}}) {
      Try(op, shape, Window({3, 3}, {1, 1}, {1, 1}));
      Try(op, shape, Window({3, 3}, {2, 2}, {1, 1}));
    }
  }
}

TEST(NativePoolTest, AttributesAndTypes) {
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    Attrs ceiled = Window({3, 3}, {2, 2}, {0, 0});
    ceiled.Set("ceil_mode", true);
    Try(op, {1, 20, 11, 12}, ceiled);
    Attrs dilated = Window({2, 3}, {1, 1}, {1, 1});
    dilated.Set("dilation", V{2, 3});
    Try(op, {1, 20, 11, 15}, dilated);
    Try(op, {1, 20, 9, 9}, Window({3, 3}, {1, 1}, {1, 1}), kFloat16);
    Try(op, {1, 20, 9, 9}, Window({3, 3}, {1, 1}, {1, 1}), kFloat64);
    Try(op, {1, 20, 9, 9}, Window({3, 3}, {1, 1}, {1, 1}), kInt8);
  }
  for (const bool ceil : {false, true}) {
    Attrs counted = Window({3, 3}, {2, 2}, {1, 1});
    counted.Set("count_include_pad", true);
    counted.Set("ceil_mode", ceil);
    Try("nn.avg_pool2d", {1, 20, 11, 12}, counted);
  }
}

TEST(NativePoolTest, LinesAndVolumes) {
  for (const char* kind : {"max", "avg"}) {
    const std::string line = fmt::format("nn.{}_pool1d", kind);
    const std::string volume = fmt::format("nn.{}_pool3d", kind);
    Try(line, {2, 19, 40}, Window({3}, {1}, {1}));
    Try(line, {2, 16, 40}, Window({5}, {3}, {2}));
    Try(volume, {1, 19, 5, 6, 20}, Window({3, 3, 3}, {1, 1, 1}, {1, 1, 1}));
    Try(volume, {1, 16, 6, 7, 9}, Window({2, 3, 2}, {2, 2, 2}, {0, 1, 0}));
  }
}

TEST(NativePoolTest, RowsOfSeveralVectors) {
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    for (const Attrs& window :
         {Window({3, 3}, {1, 1}, {1, 1}), Window({3, 3}, {2, 2}, {1, 1}), Window({2, 2}, {2, 2}, {0, 0}),
          Window({3, 5}, {2, 2}, {1, 2}), Window({3, 3}, {3, 3}, {1, 1}), Window({2, 4}, {1, 1}, {0, 1, 2, 0})}) {
      for (const int64_t width : {8, 31, 130}) Try(op, {1, 3, 9, width}, window);
    }
  }
  // Windows that lie side by side with one element of each dimension to spare, and without their padding.
  for (const bool counts : {false, true}) {
    Attrs wide = Window({3, 3}, {1, 1}, {1, 1});
    wide.Set("count_include_pad", counts);
    Try("nn.avg_pool2d", {2, 5, 6, 150}, wide, kFloat32, 2);
    Try("nn.avg_pool2d", {1, 130, 6, 7}, wide, kFloat64);
  }
}

TEST(NativePoolTest, WindowsWithGapsBetweenTheirTaps) {
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    for (const int64_t stride : {1, 2, 3}) {
      Attrs window = Window({3, 3}, {stride, stride}, {2, 2});
      window.Set("dilation", V{3, 2});
      Try(op, {1, 18, 20, 37}, window);
      window.Set("dilation", V{2, 3});
      Try(op, {1, 18, 20, 37}, window);
    }
  }
}

TEST(NativePoolTest, InfiniteElementsAtTheEdgesStay) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    for (const double value : {infinity, -infinity}) {
      Tensor number = Tensor::Zeros({}, kFloat32);
      number.data<float>()[0] = static_cast<float>(value);
      const Var x = conformance::Input("x", {1, 17, 6, 21});
      const Expr pool = MakeCall(op, {MakeCall("multiply", {x, MakeConstant(number)})}, Window({3, 3}, {1, 1}, {1, 1}));
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        conformance::ExpectAgrees(conformance::BuiltinToolchain("native"), MakeFunction({x}, pool),
                                  {.layouts = {{layout}, {layout}}, .low = 0.5});
      }
    }
  }
}

TEST(NativePoolTest, RepeatedElementsAreReadWhereTheyAre) {
  for (const char* method : {"nearest_neighbor", "linear"}) {
    const Var x = conformance::Input("x", {1, 19, 7, 5});
    const Expr larger = MakeCall("image.resize2d", {x}, {{"size", V{14, 11}}, {"method", method}});
    const Expr pool = MakeCall("nn.max_pool2d", {larger}, Window({3, 2}, {2, 1}, {1, 0}));
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
      conformance::ExpectAgrees(conformance::BuiltinToolchain("native"), MakeFunction({x}, MakeCall("nn.relu", {pool})),
                                {.layouts = {{layout}, {layout}}, .tolerance = 1e-6});
    }
  }
}

TEST(NativePoolTest, WindowsOfRepeatedElements) {
  const auto resized = [](const Expr& x, V size) {
    return MakeCall("image.resize2d", {x},
                    {{"size", std::move(size)},
                     {"method", "nearest_neighbor"},
                     {"coordinate_transformation_mode", "asymmetric"},
                     {"rounding_method", "floor"}});
  };
  const std::vector<std::pair<V, Attrs>> cases{
      {{12, 42}, Window({2, 2}, {2, 2}, {0, 0})}, {{12, 42}, Window({4, 4}, {2, 2}, {2, 2})},
      {{12, 42}, Window({4, 6}, {4, 2}, {0, 2})}, {{12, 42}, Window({3, 3}, {1, 1}, {1, 1})},
      {{18, 63}, Window({3, 6}, {3, 3}, {0, 3})}, {{3, 7}, Window({3, 3}, {1, 1}, {1, 1})},
      {{6, 42}, Window({3, 2}, {1, 2}, {1, 0})},  {{9, 30}, Window({2, 2}, {2, 2}, {0, 0})},
  };
  for (const char* op : {"nn.max_pool2d", "nn.avg_pool2d"}) {
    for (const auto& [size, window] : cases) {
      const Var x = conformance::Input("x", {1, 19, 6, 21});
      const Function function = MakeFunction({x}, MakeCall(op, {resized(x, size)}, window));
      InferType(function);
      SCOPED_TRACE(fmt::format("{}, size {}", op, fmt::join(size, "x")));
      for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
        conformance::ExpectAgrees(conformance::BuiltinToolchain("native"), function,
                                  {.layouts = {{layout}, {layout}}, .tolerance = 1e-6});
      }
    }
  }
}

std::vector<size_t> SizesOfProposals(const char* method) {
  const Var x = conformance::Input("x", {1, 8, 7, 5});
  const Expr larger = MakeCall("image.resize2d", {x}, {{"size", V{14, 10}}, {"method", method}});
  const Function function =
      MakeFunction({x}, MakeCall("nn.relu", {MakeCall("nn.max_pool2d", {larger}, Window({2, 2}, {2, 2}, {0, 0}))}));
  InferType(function);
  std::vector<size_t> sizes;
  for (const auto& proposal : conformance::BuiltinToolchain("native").Proposals(function))
    sizes.push_back(proposal.size());
  return sizes;
}

TEST(NativePoolTest, PoolsOfRepeatedElementsAreCandidates) {
  EXPECT_EQ(SizesOfProposals("nearest_neighbor"), std::vector<size_t>{2});
  EXPECT_EQ(SizesOfProposals("linear"), std::vector<size_t>{});
}

}  // namespace
}  // namespace collage
