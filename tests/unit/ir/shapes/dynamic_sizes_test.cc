#include "collage/ir/dynamic_sizes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

IRModule Parse(const std::string& text) { return ParseModule("#[version = \"0.0.5\"]\n" + text, "t.relay"); }

/// "n0: 0.0.0 1.0.0, n1 = 4 assumed: …": of each variable the places, value.field.dimension.
std::string Shown(const std::string& text) {
  const DynamicSizes sizes = FindDynamicSizes(Parse(text).main());
  std::string shown;
  for (size_t i = 0; i < sizes.variables.size(); ++i) {
    const DynamicSizes::Variable& variable = sizes.variables[i];
    shown +=
        fmt::format("{}n{}{}{}:", i == 0 ? "" : ", ", i, variable.known < 0 ? "" : fmt::format(" = {}", variable.known),
                    variable.is_assumed ? " assumed" : "");
    for (const DynamicSizes::Place& place : variable.places) {
      shown += fmt::format(" {}.{}.{}", place.value, place.field, place.dim);
    }
  }
  return shown;
}

TEST(DynamicSizesTest, DimensionsThatAreEqualShareAVariable) {
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?, 4), float32]) { nn.relu(tanh(%x)) }"), "n0: 0.0.0 1.0.0 2.0.0");
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?, 4, ?), float32]) { transpose(%x, axes=[2, 0, 1]) }"),
            "n0: 0.0.0 1.0.1, n1: 0.0.2 1.0.0");
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?, ?), float32], %w: Tensor[(8, 4), float32]) { nn.dense(%x, %w) }"),
            "n0: 0.0.0 2.0.0, n1 = 4: 0.0.1");
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?, 4, ?), float32]) { sum(%x, axis=[1]) }"),
            "n0: 0.0.0 1.0.0, n1: 0.0.2 1.0.1");
  EXPECT_EQ(Shown("def @main(%t: Tensor[(9, 4), float32], %i: Tensor[(?), int64]) { take(%t, %i, axis=0) }"),
            "n0: 1.0.0 2.0.0");
}

TEST(DynamicSizesTest, WindowsThatTakeWhatIsAddedKeepTheSize) {
  EXPECT_EQ(Shown(R"(def @main(%x: Tensor[(?, 3, ?, ?), float32], %w: Tensor[(8, 3, 3, 5), float32]) {
                       nn.conv2d(%x, %w, padding=[1, 2]) })"),
            "n0: 0.0.0 2.0.0, n1: 0.0.2 2.0.2, n2: 0.0.3 2.0.3");
  EXPECT_EQ(Shown(R"(def @main(%x: Tensor[(1, ?, ?, ?), float32]) {
                       nn.max_pool2d(%x, pool_size=[3, 3], strides=[1, 2], padding=[1, 1, 1, 1]) })"),
            "n0: 0.0.1 1.0.1, n1: 0.0.2 1.0.2, n2: 0.0.3, n3: 1.0.3");
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?, ?, ?, 4), float32]) { nn.global_avg_pool2d(%x) }"),
            "n0: 0.0.0 1.0.0, n1: 0.0.1 1.0.1, n2: 0.0.2");
}

TEST(DynamicSizesTest, WhatBroadcastingAllowsToDifferIsAssumed) {
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) { add(%x, %y) }"),
            "n0 assumed: 0.0.0 1.0.0 2.0.0");
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(1, 4), float32]) { add(%x, %y) }"),
            "n0: 0.0.0 2.0.0");
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?), float32], %y: Tensor[(4), float32]) { add(%x, %y) }"),
            "n0 = 4 assumed: 0.0.0");
  EXPECT_EQ(Shown("def @main(%x: Tensor[(?), float32]) { add(%x, tanh(%x)) }"), "n0: 0.0.0 1.0.0 2.0.0");
}

TEST(DynamicSizesTest, ValuesAreThoseOfARun) {
  const DynamicSizes sizes = FindDynamicSizes(
      Parse("def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) { add(%x, %y) }").main());
  const auto values = [&](int64_t a, int64_t b) {
    return ValuesOf(sizes,
                    TypesOfValues(sizes, {TensorType(Shape{a, 3}, kFloat32), TensorType(Shape{b, 3}, kFloat32)}));
  };
  EXPECT_EQ(values(5, 5), (std::vector<int64_t>{5}));
  EXPECT_EQ(values(0, 0), (std::vector<int64_t>{0}));
  EXPECT_EQ(values(5, 1), std::nullopt);
  ExpectError([&] { values(5, 2); }, ErrorCategory::kInput, "add");
}

TEST(DynamicSizesTest, RowsMayBeCounted) {
  const Function main = Parse(R"(def @main(%x: Tensor[(?, 2, 3), float32]) {
    (reshape(%x, newshape=[0, -1]), reshape(%x, newshape=[-1, 3, 2])) })")
                            .main();
  EXPECT_TRUE(IsBatch(main->params()[0]->checked_type()));
  EXPECT_EQ(ToString(main->body()->checked_type()), "(Tensor[(?, 6), float32], Tensor[(?, 3, 2), float32])");
  EXPECT_EQ(ToString(WithBatchSize(main, 4)->body()->checked_type()),
            "(Tensor[(4, 6), float32], Tensor[(4, 3, 2), float32])");
  EXPECT_EQ(ToString(WithBatchSize(main, 0)->params()[0]->checked_type()), "Tensor[(0, 2, 3), float32]");
  EXPECT_FALSE(IsBatch(TensorType(std::vector<Dim>{Dim(2), Dim::Any()}, kFloat32)));
  EXPECT_FALSE(IsBatch(TensorType(std::vector<Dim>{Dim::Any(), Dim::Any()}, kFloat32)));
}

}  // namespace
}  // namespace collage
