#include "partition/work.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"

namespace collage {
namespace {

using Ints = std::vector<int64_t>;

Function Typed(std::vector<Var> params, const Expr& body) {
  const Function function = MakeFunction(std::move(params), body);
  InferType(function);
  return function;
}

Var Data(const Shape& shape, DataType dtype = kFloat32) { return MakeVar("x", TensorType(shape, dtype)); }
Expr Weight(const Shape& shape) { return MakeConstant(Tensor::Zeros(shape, kFloat32)); }

TEST(WorkTest, CountsProductsAndBytes) {
  const Var x = Data({4, 64});
  const Work work = WorkOf(Typed({x}, MakeCall("nn.relu", {MakeCall("nn.dense", {x, Weight({10, 64})})})));
  EXPECT_EQ(work.multiply_adds, 4 * 64 * 10);
  EXPECT_EQ(work.constant_bytes, 10 * 64 * 4);
  EXPECT_EQ(work.boundary_bytes, 4 * 64 * 4 + 4 * 10 * 4);
}

TEST(WorkTest, ValuesKeptInFewerBitsAreFewerBytes) {
  const Var x = Data({1, 8, 4, 4});
  const Function relu = Typed({x}, MakeCall("nn.relu", {x}));
  const double all = WorkOf(relu).boundary_bytes;
  EXPECT_EQ(WorkOf(relu, {{Layout::kChannelsLast}, {Layout::kPlain}}).boundary_bytes, all);
  EXPECT_EQ(WorkOf(relu, {{Layout::kChannelsLast}, {Layout::kChannelsLastBFloat16}}).boundary_bytes, all * 3 / 4);
  EXPECT_EQ(WorkOf(relu, {{Layout::kPlainBFloat16}, {Layout::kPlainBFloat16}}).boundary_bytes, all / 2);
}

TEST(WorkTest, IsLessInLowerPrecision) {
  const Work work = InLowerPrecision({.multiply_adds = 160, .constant_bytes = 8, .boundary_bytes = 4, .spared = 16});
  EXPECT_EQ(work.multiply_adds, 10);
  EXPECT_EQ(work.spared, 1);
  EXPECT_EQ(work.constant_bytes, 4);
  EXPECT_EQ(work.boundary_bytes, 4) << "values at the boundary are as ever";
}

TEST(WorkTest, ProductsOfConvolutionsAreThoseWithinTheData) {
  // Counted one by one: for each output position and tap, whether it falls on the data.
  const auto count = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
    double valid = 0;
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t at = o * stride + k * dilation - pad;
        valid += at >= 0 && at < in ? 1 : 0;
      }
    }
    return valid;
  };
  const Var x = Data({2, 6, 11, 9});
  const Attrs attrs{{"padding", Ints{2, 1}}, {"strides", Ints{2, 1}}, {"dilation", Ints{1, 2}}, {"groups", 2}};
  const Work work = WorkOf(Typed({x}, MakeCall("nn.conv2d", {x, Weight({8, 3, 5, 3})}, attrs)));
  // Heights: (11 + 4 - 5) / 2 + 1 = 6; widths: 9 + 2 - 5 + 1 = 7.
  EXPECT_EQ(work.multiply_adds, 2 * 8 * 3 * count(11, 6, 5, 2, 1, 2) * count(9, 7, 3, 1, 2, 1));
  const Work transposed = WorkOf(Typed({x}, MakeCall("nn.conv2d_transpose", {x, Weight({6, 5, 4, 4})},
                                                     {{"strides", Ints{2, 2}}, {"padding", Ints{1, 1}}})));
  // Each of the data's positions writes to those of its window that are in the result, 22 x 18.
  EXPECT_EQ(transposed.multiply_adds, 2 * 6 * 5 * count(22, 11, 4, 2, 1, 1) * count(18, 9, 4, 2, 1, 1));
}

TEST(WorkTest, NarrowProductsCountLess) {
  const Var half = Data({4, 64}, kFloat16);
  const Expr weight = MakeConstant(Tensor::Zeros({10, 64}, kFloat16));
  EXPECT_EQ(WorkOf(Typed({half}, MakeCall("nn.dense", {half, weight}))).multiply_adds, 4 * 64 * 10 / 16.0);
}

TEST(WorkTest, FastAlgorithmsSpareProducts) {
  const Var x = Data({1, 8, 12, 12});
  const auto spared = [&](const Shape& weight, const Attrs& attrs) {
    const Work work = WorkOf(Typed({x}, MakeCall("nn.conv2d", {x, Weight(weight)}, attrs)));
    return work.spared / work.multiply_adds;
  };
  EXPECT_EQ(spared({16, 8, 3, 3}, {{"padding", Ints{1, 1}}}), 0.75);
  EXPECT_EQ(spared({16, 8, 3, 3}, {{"strides", Ints{2, 1}}}), 0);
  EXPECT_EQ(spared({16, 8, 3, 3}, {{"dilation", Ints{2, 2}}}), 0);
  EXPECT_EQ(spared({16, 4, 3, 3}, {{"groups", 2}}), 0);
  EXPECT_EQ(spared({16, 8, 3, 1}, {}), 0.5);
  EXPECT_DOUBLE_EQ(spared({16, 8, 1, 5}, {}), 0.6);
  EXPECT_EQ(spared({16, 8, 1, 1}, {}), 0.125);
  EXPECT_EQ(spared({16, 8, 1, 1}, {{"strides", Ints{2, 2}}}), 0);
}

TEST(WorkTest, AllProductsCountAlikeBesideThoseOfNarrowTypes) {
  const Var half = Data({4, 64}, kFloat16);
  const Expr weight = MakeConstant(Tensor::Zeros({10, 64}, kFloat16));
  EXPECT_EQ(WorkOf(Typed({half}, MakeCall("nn.dense", {half, weight}))).products, 4 * 64 * 10);
}

TEST(WorkTest, ProductsBelongToTheNodesOfTheModel) {
  const Var x = Data({4, 64});
  const Expr dense = MakeCall("nn.dense", {x, Weight({10, 64})});
  dense->set_span({"fc", 0, 0});
  const Expr relu = MakeCall("nn.relu", {dense});
  relu->set_span({"act", 0, 0});
  const Function function = Typed({x}, relu);
  EXPECT_EQ(ProductsOfNodes(function, {"fc", "act"}), (std::vector<double>{4 * 64 * 10, 0}));
  EXPECT_EQ(ProductsOfNodes(function, {"act"}), std::vector<double>{}) << "there are none";
}

}  // namespace
}  // namespace collage
