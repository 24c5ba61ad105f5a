// reference_test.cc: what rounding leaves open is allowed, what is wrong is found.
#include "ir/eval/reference.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/rounding.h"
#include "ir/eval/sample_inputs.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

Expr Scale(double value) { return MakeScalar(value, kFloat32); }
Expr Zero(double value) { return MakeScalar(value, kUInt8); }

/// Three convolutions of bytes, each followed by relu and quantised, and what may be wrong with them.
struct Network {
  double middle_zero = 13;  ///< that the second result is quantised with; dequantised is it with 13
  double last_zero = 100;
  double weight_scale = 0.011;
  double last_scale = 0.031;
  double last_shift = 0;    ///< added before the last result is quantised
  double middle_shift = 0;  ///< before the second one is
  bool has_middle = true;   ///< whether the second result is quantised at all
  bool has_relu = true;
  double pad = 0;        ///< what the third convolution is padded with
  bool is_wide = false;  ///< whether the last result is quantised to steps of 16

  Function Make() const {
    const Var x = MakeVar("x", TensorType(Shape{1, 8, 14, 14}, kFloat32));
    const auto quantise = [](const Expr& data, double scale, double zero) {
      return MakeCall("qnn.quantize", {data, Scale(scale), Zero(zero)}, {{"out_dtype", kUInt8}});
    };
    const auto dequantise = [](const Expr& data, double scale, double zero) {
      return MakeCall("qnn.dequantize", {data, Scale(scale), Zero(zero)});
    };
    const auto convolve = [&](const Expr& data, int64_t channels, uint64_t seed, std::vector<int64_t> padding) {
      const Tensor weights = Tensor::Empty({16, channels, 3, 3}, kInt8);
      FillRandom(weights, seed, -20, 20);
      const Expr weight =
          MakeCall("qnn.dequantize", {MakeConstant(weights), Scale(weight_scale), MakeScalar(0, kInt8)});
      return MakeCall("nn.conv2d", {data, weight}, {{"padding", std::move(padding)}});
    };
    const auto relu = [&](const Expr& data) { return has_relu ? MakeCall("nn.relu", {data}) : data; };
    const auto plus = [](const Expr& data, double shift) {
      return shift == 0 ? data : MakeCall("add", {data, Scale(shift)});
    };
    const Expr first = convolve(dequantise(quantise(x, 0.0079, 127), 0.0079, 127), 8, 1, {1, 1});
    const Expr first_bytes = quantise(MakeCall("nn.relu", {first}), 0.0173, 9);
    const Expr second = plus(relu(convolve(dequantise(first_bytes, 0.0173, 9), 16, 2, {1, 1})), middle_shift);
    const Expr third_input = has_middle ? dequantise(quantise(second, 0.0217, middle_zero), 0.0217, 13) : second;
    const AttrValue::List none{int64_t{0}, int64_t{0}}, one{int64_t{1}, int64_t{1}};
    const Expr padded =
        MakeCall("nn.pad", {third_input, Scale(pad)}, {{"pad_width", AttrValue::List{none, none, one, one}}});
    const Expr third = plus(convolve(padded, 16, 3, {0, 0}), last_shift);
    const double step = is_wide ? 16 : 1;
    const Expr last = quantise(third, last_scale * step, last_zero / step);
    const Function function = MakeFunction({x}, is_wide ? MakeCall("multiply", {last, MakeScalar(16, kUInt8)}) : last);
    InferType(function);
    return function;
  }

  Tensor Result(const EvaluateOptions& options = {}) const { return Evaluate(Make(), Inputs(), options)[0]; }

  static std::vector<Tensor> Inputs() {
    const Tensor x = Tensor::Empty({1, 8, 14, 14}, kFloat32);
    FillRandom(x, 77);
    return {x};
  }
};

class ReferenceTest : public testing::Test {
 protected:
  /// "" when `actual` may be the network's result.
  std::string Judge(const Tensor& actual) const { return reference_.Compare(0, actual).difference; }

  const Reference reference_{Network().Make(), Network::Inputs()};
};

TEST_F(ReferenceTest, TheReferenceItselfAndOtherRoundingsAgree) {
  EXPECT_GT(reference_.Open(0).largest, 0);
  EXPECT_EQ(Judge(Network().Result()), "");
  for (uint64_t seed = 1000; seed < 1020; ++seed) {
    EXPECT_EQ(Judge(Network().Result({Rounding::kRandom, seed})), "") << seed;
  }
  // Sums that are off in their last places.
  EXPECT_EQ(Judge(Network{.weight_scale = 0.011 * (1 + 2e-6)}.Result()), "");
  // What is not rounded to bytes on the way at all.
  EXPECT_EQ(Judge(Network{.has_middle = false}.Result()), "");
}

TEST_F(ReferenceTest, WrongZeroPointsAreFound) {
  for (const double wrong : {-1, 1}) {
    EXPECT_NE(Judge(Network{.last_zero = 100 + wrong}.Result()), "") << wrong;
    EXPECT_NE(Judge(Network{.middle_zero = 13 + wrong}.Result()), "") << wrong;
  }
  EXPECT_NE(Judge(Network{.last_zero = 101}.Result()).find("on average"), std::string::npos);
}

TEST_F(ReferenceTest, WrongScalesAreFound) {
  for (const double factor : {0.96, 1.04}) {
    EXPECT_NE(Judge(Network{.last_scale = 0.031 * factor}.Result()), "") << factor;
    EXPECT_NE(Judge(Network{.weight_scale = 0.011 * factor}.Result()), "") << factor;
  }
}

TEST_F(ReferenceTest, WrongRoundingIsFound) {
  // Down instead of to the nearest.
  EXPECT_NE(Judge(Network{.last_shift = -0.031 / 2}.Result()), "");
  EXPECT_NE(Judge(Network{.middle_shift = -0.0217 / 2}.Result()), "");
  // To 4 bits.
  EXPECT_NE(Judge(Network{.last_zero = 96, .is_wide = true}.Result()), "");
}

TEST_F(ReferenceTest, WhatIsWrongInPlacesIsFound) {
  EXPECT_NE(Judge(Network{.has_relu = false}.Result()), "");
  // The zero point as a number where the data are padded.
  EXPECT_NE(Judge(Network{.pad = -13 * 0.0217}.Result()), "");
  const Tensor right = Network().Result();
  const auto altered = [&](const auto& alter) {
    const Tensor copy = right.Clone();
    alter(copy);
    return Judge(copy);
  };
  constexpr int64_t kPlane = 14 * 14;
  EXPECT_EQ(altered([](const Tensor& t) { t.Set(700, t.At(700) + 1); }), "");
  EXPECT_NE(altered([](const Tensor& t) { t.Set(700, t.At(700) + 60); }), "");
  EXPECT_NE(altered([](const Tensor& t) {
              for (int64_t i = 0; i < kPlane; ++i) t.Set(i, 100);
            }),
            "");
  EXPECT_NE(altered([](const Tensor& t) { std::memmove(t.raw(), t.data<char>() + 1, t.size_bytes() - 1); }), "");
  EXPECT_NE(Judge(right.Reshaped({16, 1, 14, 14})), "");
}

TEST(ReferenceOfFloatsTest, LittleIsOpen) {
  const Var x = MakeVar("x", TensorType(Shape{64}, kFloat32));
  const Function function = MakeFunction({x}, MakeCall("exp", {x}));
  InferType(function);
  const Tensor input = Tensor::Empty({64}, kFloat32);
  FillRandom(input, 3);
  const Reference reference(function, std::vector{input});
  EXPECT_LT(reference.Open(0).largest, 1e-6);
  const Tensor other = reference.results()[0].Clone();
  EXPECT_TRUE(reference.Compare(0, other).agrees);
  other.Set(5, other.At(5) + 0.01);
  EXPECT_FALSE(reference.Compare(0, other).agrees);
  EXPECT_TRUE(reference.Compare(0, other, {0, 0.02}).agrees);
}

TEST(ReferenceOfConstantsTest, WhatConstantsMakeIsNotOpen) {
  const Var x = MakeVar("x", TensorType(Shape{64}, kFloat32));
  const Tensor weights = Tensor::Empty({64}, kFloat32);
  FillRandom(weights, 4);
  const Expr bytes = MakeCall("qnn.quantize", {MakeConstant(weights), Scale(0.01), Zero(128)}, {{"out_dtype", kUInt8}});
  const Expr inside = MakeCall("qnn.dequantize", {bytes, Scale(0.01), Zero(128)});
  const Var p = MakeVar("p", TensorType(Shape{64}, kUInt8));
  const Expr called =
      MakeCall(MakeFunction({p}, MakeCall("qnn.dequantize", {p, Scale(0.01), Zero(128)})), std::vector<Expr>{bytes});
  const Function function = MakeFunction({x}, MakeCall("add", {MakeCall("add", {x, inside}), called}));
  InferType(function);
  EXPECT_TRUE(RoundsToIntegers(function));
  const Reference reference(function, std::vector{weights});
  EXPECT_LT(reference.Open(0).largest, 1e-6);
}

TEST(ReferenceOfProgramsTest, RoundingIsOpenBehindBranchesToo) {
  const IRModule module = ParseModule(R"(
      def @main(%x: Tensor[(64), float32], %c: bool) -> Tensor[(64), int8] {
        let %y = multiply(%x, 100f);
        if (%c) { qnn.quantize(%y, 1f, 0, out_dtype="int8") } else { cast(%y, dtype="int8") }
      })");
  const Tensor x = Tensor::Empty({64}, kFloat32);
  FillRandom(x, 5);
  for (const bool condition : {false, true}) {
    const Reference reference(module.main(), std::vector{x, MakeScalar(condition, kBool)->value()});
    EXPECT_EQ(reference.Open(0).largest > 0, condition);
  }
}

/// Rows of a table near 1, standardised with the variance written as E[x²] − E[x]², which cancels; and their mean.
Function StandardiseByCancellation() {
  const Tensor table = Tensor::Empty({300, 8}, kFloat32);
  FillRandom(table, 9);
  for (int64_t i = 0; i < table.num_elements(); ++i) table.Set(i, 1 + 1e-3 * table.At(i));
  const Var indices = MakeVar("indices", TensorType(Shape{512}, kInt64));
  const Expr rows = MakeCall("take", {MakeConstant(table), indices}, {{"axis", 0}});
  const Attrs over_rows{{"axis", AttrValue::List{int64_t{0}}}, {"keepdims", true}};
  const Expr mean = MakeCall("mean", {rows}, over_rows);
  const Expr squares = MakeCall("mean", {MakeCall("multiply", {rows, rows})}, over_rows);
  const Expr variance = MakeCall("subtract", {squares, MakeCall("multiply", {mean, mean})});
  const Expr deviation = MakeCall("sqrt", {MakeCall("add", {variance, Scale(1e-6)})});
  const Function function =
      MakeFunction({indices}, MakeTuple({MakeCall("divide", {MakeCall("subtract", {rows, mean}), deviation}), mean}));
  InferType(function);
  return function;
}

TEST(ReferenceOfFloatsTest, WhatCancellationMakesOfRoundingIsOpen) {
  const Function function = StandardiseByCancellation();
  const std::vector<Tensor> inputs = SampleInputs(function, Draw::kUnit);
  const Reference reference(function, inputs);
  const std::vector<Tensor>& right = reference.results();
  EXPECT_GT(reference.Open(0).largest, 1e-3);
  EXPECT_LT(reference.Open(1).largest, 1e-5);
  // Sums in float32, of every sixteenth row first, as kernels with vectors add them.
  const Tensor summed = right[0].Clone();
  const auto* standardised = As<CallNode>(As<TupleNode>(function->body())->fields()[0]);
  const Function take = MakeFunction(function->params(), As<CallNode>(standardised->args()[0])->args()[0]);
  InferType(take);
  const Tensor x = Evaluate(take, inputs)[0];
  for (int64_t column = 0; column < 8; ++column) {
    std::array<float, 16> sums{}, squares{};
    for (int64_t i = 0; i < 512; ++i) {
      const auto value = static_cast<float>(x.At(i * 8 + column));
      sums[static_cast<size_t>(i % 16)] += value;
      squares[static_cast<size_t>(i % 16)] += value * value;
    }
    const float mean = std::accumulate(sums.begin(), sums.end(), 0.0F) / 512;
    const float variance = std::accumulate(squares.begin(), squares.end(), 0.0F) / 512 - mean * mean;
    for (int64_t i = 0; i < 512; ++i) {
      const auto value = static_cast<float>(x.At(i * 8 + column));
      summed.Set(i * 8 + column, (value - mean) / std::sqrt(variance + 1e-6F));
    }
  }
  EXPECT_FALSE(Compare(summed, right[0], ToleranceFor(right[0])).agrees) << "the tolerance alone would do";
  EXPECT_EQ(reference.Compare(0, summed).difference, "");
  // A mean that is wrong by one per cent is well-conditioned.
  const Tensor wrong = right[1].Clone();
  for (int64_t i = 0; i < wrong.num_elements(); ++i) wrong.Set(i, wrong.At(i) * 1.01);
  EXPECT_NE(reference.Compare(1, wrong).difference, "");
  // And so is noise of ten times that size in the other.
  const Tensor noise = Tensor::Empty(right[0].shape(), kFloat32);
  FillRandom(noise, 10);
  const Tensor noisy = right[0].Clone();
  for (int64_t i = 0; i < noisy.num_elements(); ++i) noisy.Set(i, noisy.At(i) + 10 * noise.At(i));
  EXPECT_NE(reference.Compare(0, noisy).difference, "");
}

TEST(ReferenceOfFloatsTest, WholeNumbersStayWhole) {
  const IRModule module = ParseModule(R"(
      def @main(%x: Tensor[(64), int32]) {
        let %sum = sum(cast(%x, dtype="float32"), axis=[0]);
        cast(floor(divide(multiply(%sum, 3f), 3f)), dtype="int32")
      })");
  const std::vector<Tensor> inputs = SampleInputs(module.main(), Draw::kWide);
  EXPECT_EQ(Reference(module.main(), inputs).Open(0).largest, 0);
}

TEST(ReferenceOfFloatsTest, OverflowOfLargeInputsMayBeAnything) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(4), float32]) { exp(%x) }");
  const std::vector<Tensor> inputs{Tensor::Of<float>({4}, kFloat32, std::vector<float>{0, 1, 1000, 2})};
  const Tensor other = Evaluate(module.main(), inputs)[0];
  other.Set(2, 7);
  EXPECT_FALSE(Reference(module.main(), inputs).Compare(0, other).agrees);
  const Reference reference(module.main(), inputs, {.only_finite = true, .on_operator = {}});
  EXPECT_TRUE(reference.Compare(0, other).agrees);
  other.Set(1, 7);
  EXPECT_FALSE(reference.Compare(0, other).agrees);
}

TEST(ReferenceOfFloatsTest, ResultsCloseToOverflowMayOverflow) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(3), float32]) { exp(%x) }");
  const std::vector<Tensor> inputs{Tensor::Of<float>({3}, kFloat32, std::vector<float>{0, 80, 88.5})};
  const Tensor other = Evaluate(module.main(), inputs)[0].Clone();
  const Reference reference(module.main(), inputs, {.only_finite = true, .on_operator = {}});
  other.Set(2, INFINITY);
  EXPECT_TRUE(reference.Compare(0, other).agrees);
  other.Set(1, INFINITY);
  EXPECT_FALSE(reference.Compare(0, other).agrees);
}

TEST(ReferenceOfFloatsTest, NaNMayGetLostAndNothingElse) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(3), float32]) { sqrt(%x) }");
  const std::vector<Tensor> inputs{Tensor::Of<float>({3}, kFloat32, std::vector<float>{4, -1, INFINITY})};
  const Tensor other = Evaluate(module.main(), inputs)[0].Clone();
  const Reference reference(module.main(), inputs, {.only_numbers = true, .on_operator = {}});
  EXPECT_TRUE(reference.Compare(0, other).agrees);
  other.Set(1, 7);
  EXPECT_TRUE(reference.Compare(0, other).agrees);
  other.Set(2, 7);
  EXPECT_FALSE(reference.Compare(0, other).agrees);
}

TEST(RounderTest, RandomRoundingKeepsMeansAndWholeNumbers) {
  Rounder round = Rounder::AtRandom(1);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double rounded = round(-2.3);
    EXPECT_TRUE(rounded == -3 || rounded == -2);
    sum += rounded;
    EXPECT_EQ(round(7), 7);
  }
  EXPECT_NEAR(sum / 10000, -2.3, 0.02);
  EXPECT_EQ(round(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(round(NAN)));
}

TEST(RounderTest, TiesGoToEven) {
  Rounder round;
  EXPECT_EQ((std::vector<double>{round(-1.5), round(-0.5), round(0.5), round(2.5), round(2.6)}),
            (std::vector<double>{-2, 0, 0, 2, 3}));
}

}  // namespace
}  // namespace collage
