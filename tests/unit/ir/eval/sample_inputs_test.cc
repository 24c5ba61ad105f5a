// sample_inputs_test.cc: integers that the function can mean.
#include "ir/eval/sample_inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"

namespace collage {
namespace {

using Evidence = IntegerRange::Evidence;

/// The range of parameter `index` of `text`, the body of a function of an index %i, (2, 6) of int64, and a table %t.
IntegerRange RangeOf(const std::string& body, const std::string& dtype = "int64") {
  const IRModule module =
      ParseModule("def @main(%i: Tensor[(2, 6), " + dtype + "], %t: Tensor[(300, 8), float32]) { " + body + " }");
  return IntegerRanges(module.main()).at(0);
}

std::pair<int64_t, int64_t> Stated(const std::string& body, const std::string& dtype = "int64") {
  const IntegerRange range = RangeOf(body, dtype);
  EXPECT_EQ(range.evidence, Evidence::kStated) << body;
  return {range.low, range.high};
}

using Range = std::pair<int64_t, int64_t>;

TEST(IntegerRangesTest, IndicesStayWithinWhatTheyIndex) {
  EXPECT_EQ(Stated("take(%t, %i, axis=0)"), Range(0, 299));
  EXPECT_EQ(Stated("take(%t, %i, axis=-1)"), Range(0, 7));
  EXPECT_EQ(Stated("(take(%t, %i, axis=0), take(%t, %i, axis=1))"), Range(0, 7));
  EXPECT_EQ(Stated("gather(%t, %i, axis=0)"), Range(0, 299));
  EXPECT_EQ(Stated("gather_nd(%t, %i)"), Range(0, 7));
  EXPECT_EQ(Stated("one_hot(%i, 1f, 0f, depth=5)"), Range(0, 4));
}

TEST(IntegerRangesTest, IndicesAreFollowedThroughWhatMovesThem) {
  for (const std::string index :
       {"reshape(%i, newshape=[12])", "cast(%i, dtype=\"int32\")", "broadcast_to(%i, shape=[3, 2, 6])",
        "concatenate((%i, %i), axis=0)", "strided_slice(%i, begin=[1], end=[2], strides=[1], axes=[0])",
        "squeeze(expand_dims(%i, axis=0), axis=[0])", "transpose(%i)", "clip(%i, a_min=0.0, a_max=299.0)",
        "split(%i, indices_or_sections=2, axis=1).1", "reshape(cast(transpose(%i), dtype=\"int32\"), newshape=[-1])",
        "(%t, %i).1", "where(less(%i, cast(0, dtype=\"int64\")), add(%i, cast(0, dtype=\"int64\")), %i)"}) {
    EXPECT_EQ(Stated("take(%t, " + index + ", axis=0)"), Range(0, 299)) << index;
  }
  EXPECT_EQ(Stated("fn (%j: Tensor[(2, 6), int64]) { take(%t, %j, axis=0) }(%i)"), Range(0, 299));
  EXPECT_EQ(Stated("let %j = cast(%i, dtype=\"int32\"); take(%t, %j, axis=0)"), Range(0, 299));
}

TEST(IntegerRangesTest, OffsetsAreTakenOff) {
  const auto range = [](const std::string& name, int64_t amount) {
    const Var i = MakeVar("i", TensorType(Shape{6}, kInt64));
    const Var t = MakeVar("t", TensorType(Shape{300, 8}, kFloat32));
    const Expr index = MakeCall(name, {i, MakeScalar(static_cast<double>(amount), kInt64)});
    const Function function = MakeFunction({i, t}, MakeCall("take", {t, index}, {{"axis", 0}}));
    InferType(function);
    const IntegerRange found = IntegerRanges(function).at(0);
    return Range(found.low, found.high);
  };
  EXPECT_EQ(range("add", 1), Range(0, 298));
  EXPECT_EQ(range("subtract", 2), Range(2, 301));
}

TEST(IntegerRangesTest, ConstantsThatAreComparedWithAreMet) {
  const auto range = [](const std::string& op, std::vector<int64_t> constants) {
    const Var i = MakeVar("i", TensorType(Shape{6, 1}, kInt64));
    const auto count = static_cast<int64_t>(constants.size());
    const Expr other = MakeConstant(Tensor::Of<int64_t>({1, count}, kInt64, constants));
    const Function function = MakeFunction({i}, MakeCall("cast", {MakeCall(op, {i, other})}, {{"dtype", kFloat32}}));
    InferType(function);
    const IntegerRange found = IntegerRanges(function).at(0);
    return Range(found.low, found.high);
  };
  EXPECT_EQ(range("equal", {0, 1, 2, 3, 4}), Range(0, 4));  // one hot
  EXPECT_EQ(range("greater", {100}), Range(0, 201));
  EXPECT_EQ(range("not_equal", {-1}), Range(-1, 1));
  EXPECT_EQ(range("less", {int64_t{1} << 40}), Range(0, 1));
}

TEST(IntegerRangesTest, BytesThatAreDataTakeAllTheirValues) {
  EXPECT_EQ(Stated("cast(%i, dtype=\"float32\")", "uint8"), Range(0, 255));
  EXPECT_EQ(Stated("cast(reshape(%i, newshape=[12]), dtype=\"float32\")", "int8"), Range(-128, 127));
  EXPECT_EQ(Stated("qnn.dequantize(%i, 0.1f, cast(3, dtype=\"uint8\"))", "uint8"), Range(0, 255));
  EXPECT_EQ(Stated("take(%t, cast(%i, dtype=\"int32\"), axis=1)", "uint8"), Range(0, 7));
}

TEST(IntegerRangesTest, WhatIsNotKnownIsZeroOrOne) {
  // A size, and an index of which nothing is known.
  const IntegerRange unknown = RangeOf("take(%t, multiply(%i, %i), axis=0)");
  EXPECT_EQ(unknown.evidence, Evidence::kNone);
  EXPECT_EQ(Range(unknown.low, unknown.high), Range(0, 1));
  const IntegerRange harmless = RangeOf("add(%i, %i)");
  EXPECT_EQ(harmless.evidence, Evidence::kHarmless);
}

TEST(SampleInputsTest, DrawsCoverTheirRanges) {
  const IRModule module =
      ParseModule("def @main(%x: Tensor[(1000), float32], %i: Tensor[(1000), int32]) { (%x, add(%i, %i)) }");
  const auto draw = [&](Draw how) { return SampleInputs(module.main(), how); };
  const auto extremes = [](const Tensor& tensor) {
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      low = std::min(low, tensor.At(i));
      high = std::max(high, tensor.At(i));
      sum += tensor.At(i);
    }
    return std::array{low, high, sum / static_cast<double>(tensor.num_elements())};
  };
  const auto unit = extremes(draw(Draw::kUnit)[0]);
  EXPECT_TRUE(unit[0] >= -1 && unit[0] < -0.9 && unit[1] < 1 && unit[1] > 0.9);
  const auto wide = extremes(draw(Draw::kWide)[0]);
  EXPECT_TRUE(wide[0] < -15 && wide[1] > 15 && wide[1] < 16);
  const auto positive = extremes(draw(Draw::kPositive)[0]);
  EXPECT_TRUE(positive[0] >= 0 && positive[1] > 0.9 && positive[1] < 1);
  const auto normal = extremes(draw(Draw::kNormal)[0]);
  EXPECT_TRUE(normal[0] < -2.5 && normal[1] > 2.5 && std::abs(normal[2]) < 0.1);
  EXPECT_EQ(extremes(draw(Draw::kUnit)[1])[1], 1);
  EXPECT_EQ(extremes(draw(Draw::kWide)[1])[1], 7);
}

TEST(SampleInputsTest, DrawsAtTheEdgesOfTheTypeHaveItsSpecialValues) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(1000), float32]) { nn.relu(%x) }");
  const auto count = [&](Draw draw, auto&& counts) {
    const Tensor values = SampleInputs(module.main(), draw)[0];
    int64_t found = 0;
    for (int64_t i = 0; i < values.num_elements(); ++i) found += counts(values.At(i)) ? 1 : 0;
    return found;
  };
  const auto is_denormal = [](double value) { return std::fpclassify(static_cast<float>(value)) == FP_SUBNORMAL; };
  EXPECT_GT(count(Draw::kTiny, [](double value) { return value == 0 && !std::signbit(value); }), 50);
  EXPECT_GT(count(Draw::kTiny, [](double value) { return value == 0 && std::signbit(value); }), 50);
  EXPECT_GT(count(Draw::kTiny, [](double value) { return value != 0 && std::abs(value) < 1e-20; }), 50);
  EXPECT_EQ(count(Draw::kTiny, is_denormal), 0);
  EXPECT_EQ(count(Draw::kHuge, [](double value) { return std::abs(value) >= 16 && std::abs(value) <= 4096; }), 1000);
  EXPECT_GT(count(Draw::kHuge, [](double value) { return value > 1000; }), 50);
  EXPECT_GT(count(Draw::kHuge, [](double value) { return value < -1000; }), 50);
  EXPECT_GT(count(Draw::kInfinite, [](double value) { return std::isinf(value) && value < 0; }), 50);
  EXPECT_GT(count(Draw::kInfinite, [](double value) { return std::isinf(value) && value > 0; }), 50);
  EXPECT_GT(count(Draw::kNaN, [](double value) { return std::isnan(value); }), 50);
  EXPECT_GT(count(Draw::kNaN, is_denormal), 50);
}

TEST(SampleInputsTest, InfinitiesAreForSingleElementwiseOperators) {
  const auto draws = [](const char* expression, const PartitionDraws& options) {
    const std::string text = fmt::format("def @main(%x: Tensor[(8, 8), float32]) {{ {} }}", expression);
    const std::vector<Draw> all = DrawsForPartition(ParseModule(text).main(), options);
    return std::pair<int, int>(std::ranges::count(all, Draw::kInfinite), std::ranges::count(all, Draw::kNaN));
  };
  EXPECT_EQ(draws("nn.relu(%x)", {}), std::pair(1, 0));
  EXPECT_EQ(draws("nn.relu(%x)", {.is_exact = true}), std::pair(1, 1));
  EXPECT_EQ(draws("nn.relu(%x)", {.is_exact = true, .is_narrow = true}), std::pair(0, 0));
  EXPECT_EQ(draws("nn.relu(%x)", {.takes_long = true, .is_exact = true}), std::pair(0, 0));
  EXPECT_EQ(draws("exp(nn.relu(%x))", {.is_exact = true}), std::pair(0, 0));
  EXPECT_EQ(draws("nn.softmax(%x)", {.is_exact = true}), std::pair(0, 0));
}

TEST(SampleInputsTest, ValuesWhereFloat16OverflowsStaySmall) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(1000), float16]) { exp(%x) }");
  const Tensor wide = SampleInputs(module.main(), Draw::kWide)[0];
  double largest = 0;
  for (int64_t i = 0; i < wide.num_elements(); ++i) largest = std::max(largest, std::abs(wide.At(i)));
  EXPECT_GT(largest, 5.5);
  EXPECT_LE(largest, 6);
}

}  // namespace
}  // namespace collage
