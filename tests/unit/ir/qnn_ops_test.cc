// qnn_ops_test.cc: operators of Relay's quantised dialect on numbers worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collage/ir/op.h"
#include "collage/ir/text.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/reference.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;
using testing::ElementsAre;

template <typename T>
Tensor Of(Shape shape, DataType dtype, const std::vector<T>& values) {
  return Tensor::Of<T>(std::move(shape), dtype, values);
}
Tensor Bytes(Shape shape, const std::vector<int8_t>& values) { return Of<int8_t>(std::move(shape), kInt8, values); }
Tensor Scale(double value) { return MakeScalar(value, kFloat32)->value(); }
Tensor Zero(double value) { return MakeScalar(value, kInt32)->value(); }

std::vector<double> Elements(const Tensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) result.push_back(tensor.At(i));
  return result;
}

std::vector<double> Apply(std::string_view name, const std::vector<Tensor>& inputs, Attrs attrs = {}) {
  const OpDef& op = GetOp(name)->def();
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back(TensorType(input.shape(), input.dtype()));
  return Elements(EvaluateOp(op, CompleteAttrs(op, std::move(attrs)), types, inputs)[0]);
}

std::string Refusal(std::string_view name, const std::vector<Type>& types, Attrs attrs = {}) {
  const OpDef& op = GetOp(name)->def();
  const Attrs complete = CompleteAttrs(op, std::move(attrs));
  const Result<Type> type = op.relation({types, complete});
  return type.ok() ? ToString(*type) : type.reason().text;
}

TEST(QnnOpsTest, RequantizeRoundsAsItIsTold) {
  const Tensor data = Of<int32_t>({6}, kInt32, {-5, -3, -1, 1, 3, 4});
  for (const char* compute : {"None", "float32", "float64", "int64"}) {
    const auto rounded = [&](const char* rounding) {
      return Apply("qnn.requantize", {data, Scale(0.25), Zero(0), Scale(0.5), Zero(10)},
                   {{"rounding", rounding}, {"compute_dtype", compute}});
    };
    EXPECT_THAT(rounded("UPWARD"), ElementsAre(8, 9, 10, 11, 12, 12)) << compute;
    EXPECT_THAT(rounded("TONEAREST"), ElementsAre(7, 8, 9, 11, 12, 12)) << compute;
    if (std::string_view(compute) != "int64") {
      EXPECT_THAT(rounded("None"), ElementsAre(8, 8, 10, 10, 12, 12)) << compute;
    }
  }
  EXPECT_THAT(Apply("qnn.requantize", {data, Scale(100), Zero(1), Scale(0.5), Zero(10)}, {{"out_dtype", "uint8"}}),
              ElementsAre(0, 0, 0, 10, 255, 255));
}

TEST(QnnOpsTest, RequantizeTakesScalesPerChannel) {
  const Tensor data = Of<int32_t>({2, 2}, kInt32, {10, 20, 10, 20});
  const Tensor scales = Of<float>({2}, kFloat32, {1, 3}), zeros = Of<int32_t>({2}, kInt32, {0, 10});
  for (const char* compute : {"None", "float32", "float64", "int64"}) {
    const auto along = [&](int64_t axis) {
      return Apply("qnn.requantize", {data, scales, zeros, Scale(2), Zero(-1)},
                   {{"axis", axis}, {"compute_dtype", compute}, {"rounding", "UPWARD"}});
    };
    EXPECT_THAT(along(0), ElementsAre(4, 9, -1, 14)) << compute;
    EXPECT_THAT(along(1), ElementsAre(4, 14, 4, 14)) << compute;
  }
}

TEST(QnnOpsTest, ContractionsAddUpIntegersExactly) {
  // (x - 1) times the transpose of (w - 2).
  const Tensor x = Bytes({1, 3}, {1, 2, 3}), w = Bytes({2, 3}, {2, 3, 4, 0, 0, 0});
  EXPECT_THAT(Apply("qnn.dense", {x, w, Zero(1), Zero(2), Scale(7), Scale(9)}), ElementsAre(5, -6));
  const Tensor zeros = Of<int32_t>({2}, kInt32, {2, 1}), scales = Of<float>({2}, kFloat32, {1, 1});
  EXPECT_THAT(Apply("qnn.dense", {x, w, Zero(1), zeros, Scale(7), scales}), ElementsAre(5, -3));
  EXPECT_THAT(
      Apply("qnn.batch_matmul", {x.Reshaped({1, 1, 3}), w.Reshaped({1, 2, 3}), Zero(1), Zero(2), Scale(7), Scale(9)}),
      ElementsAre(5, -6));
  // Padding is the number 0: the zero point.
  EXPECT_THAT(Apply("qnn.conv2d",
                    {Bytes({1, 1, 1, 1}, {5}), Bytes({1, 1, 3, 3}, {1, 1, 1, 1, 2, 1, 1, 1, 1}), Zero(3), Zero(0),
                     Scale(1), Scale(1)},
                    {{"padding", V{1, 1}}}),
              ElementsAre(4));
  EXPECT_THAT(Apply("qnn.conv2d_transpose", {Bytes({1, 1, 1, 1}, {5}), Bytes({1, 1, 2, 2}, {1, 2, 3, 4}), Zero(3),
                                             Zero(1), Scale(1), Scale(1)}),
              ElementsAre(0, 2, 4, 6));
}

TEST(QnnOpsTest, OthersComputeOnWhatIntegersStandFor) {
  const Tensor a = Bytes({3}, {2, 4, 100}), b = Bytes({3}, {1, 1, 100});
  const std::vector<Tensor> both{a, b, Scale(0.5), Zero(0), Scale(2), Zero(-1), Scale(0.5), Zero(3)};
  EXPECT_THAT(Apply("qnn.add", both), ElementsAre(13, 15, 127));        // 1 + 4, 2 + 4, 50 + 202
  EXPECT_THAT(Apply("qnn.subtract", both), ElementsAre(-3, -1, -128));  // 1 - 4, 2 - 4, 50 - 202
  EXPECT_THAT(Apply("qnn.mul", both), ElementsAre(11, 19, 127));
  const auto of_one = [&](const char* name, Attrs attrs = {}) {
    return Apply(name, {Bytes({4}, {-8, 0, 2, 8}), Scale(0.5), Zero(0), Scale(0.25), Zero(1)}, std::move(attrs));
  };
  EXPECT_THAT(of_one("qnn.abs"), ElementsAre(17, 1, 5, 17));
  EXPECT_THAT(of_one("qnn.relu"), ElementsAre(1, 1, 5, 17));
  EXPECT_THAT(of_one("qnn.leaky_relu", {{"alpha", 0.5}}), ElementsAre(-7, 1, 5, 17));
  EXPECT_THAT(of_one("qnn.hardswish"), ElementsAre(1, 1, 4, 17));  // 0, 0, 2/3, 4
  EXPECT_THAT(of_one("qnn.sigmoid"), ElementsAre(1, 3, 4, 5));
  EXPECT_THAT(of_one("qnn.exp"), ElementsAre(1, 5, 12, 127));
  EXPECT_THAT(Apply("qnn.softmax", {Bytes({2}, {3, 3}), Scale(1), Zero(0), Scale(0.125), Zero(0)}), ElementsAre(4, 4));
  EXPECT_THAT(Apply("qnn.avg_pool2d", {Bytes({1, 1, 1, 4}, {1, 2, 3, 7}), Scale(2), Zero(1), Scale(1), Zero(0)},
                    {{"pool_size", V{1, 2}}, {"strides", V{1, 2}}}),
              ElementsAre(1, 8));
}

TEST(QnnOpsTest, ConcatenateRequantizesWhatHasAnotherScale) {
  const IRModule module = ParseModule(R"(
      def @main(%a: Tensor[(2), int8], %b: Tensor[(2), int8]) {
        qnn.concatenate((%a, %b), (0.5f, 1f), (0, 2), 0.5f, 1)
      })");
  const std::vector<Tensor> inputs{Bytes({2}, {2, 127}), Bytes({2}, {2, 5})};
  EXPECT_THAT(Elements(Evaluate(module.main(), inputs)[0]), ElementsAre(3, 127, 1, 7));
}

TEST(QnnOpsTest, SimulatedOperatorsStayFloats) {
  const Tensor x = Of<float>({3}, kFloat32, {-1.2f, 0.3f, 500.0f});
  const auto quantised = [&](double code) {
    return Apply("qnn.simulated_quantize", {x, Zero(code), Scale(0.5), Zero(1)});
  };
  EXPECT_THAT(quantised(1), ElementsAre(-1, 2, 127));
  EXPECT_THAT(quantised(2), ElementsAre(0, 2, 255));
  EXPECT_THAT(quantised(3), ElementsAre(-1, 2, 1001));
  EXPECT_EQ(quantised(0), Elements(x));
  const Tensor q = Of<float>({2}, kFloat32, {3, 7});
  EXPECT_THAT(Apply("qnn.simulated_dequantize", {q, Zero(1), Scale(0.5), Zero(1)}), ElementsAre(1, 3));
  EXPECT_THAT(Apply("qnn.simulated_dequantize", {q, Zero(0), Scale(0.5), Zero(1)}), ElementsAre(3, 7));
}

TEST(QnnOpsTest, ArgumentsThatDoNotFitAreRefused) {
  const Type bytes = TensorType(Shape{2, 6}, kInt8), f = TensorType(Shape{}, kFloat32), i = TensorType(Shape{}, kInt32);
  const Type vector = TensorType(Shape{6}, kFloat32);
  EXPECT_EQ(Refusal("qnn.requantize", {bytes, vector, i, f, i}, {{"axis", 1}}), "Tensor[(2, 6), int8]");
  EXPECT_EQ(Refusal("qnn.requantize", {bytes, vector, i, f, i}, {{"axis", 0}}),
            "expects one value or 2 along axis 0 as argument 1, got Tensor[(6), float32]");
  EXPECT_EQ(Refusal("qnn.requantize", {bytes, f, i, vector, i}),
            "expects one value as argument 3, got Tensor[(6), float32]");
  EXPECT_EQ(Refusal("qnn.requantize", {bytes, f, i, f, i}, {{"rounding", "DOWN"}}),
            "expects rounding to be one of 'None', 'UPWARD', 'TONEAREST', got 'DOWN'");
  EXPECT_EQ(Refusal("qnn.add", {bytes, TensorType(Shape{2, 6}, kUInt8), f, i, f, i, f, i}),
            "expects equal dtypes, got Tensor[(2, 6), int8] and Tensor[(2, 6), uint8]");
  EXPECT_EQ(Refusal("qnn.tanh", {TensorType(Shape{2}, kFloat32), f, i, f, i}),
            "expects integers as argument 0, got Tensor[(2), float32]");
  EXPECT_EQ(Refusal("qnn.dense", {bytes, bytes, i, i, f, f}, {{"out_dtype", "float32"}}),
            "adds up integers, not 'float32'");
  EXPECT_EQ(Refusal("qnn.dense", {bytes, bytes, i, i, f, f}), "Tensor[(2, 2), int32]");
  EXPECT_EQ(Refusal("qnn.batch_matmul", {TensorType(Shape{1, 2, 6}, kInt8), TensorType(Shape{1, 3, 6}, kInt8), i, i, f,
                                         TensorType(Shape{3}, kFloat32)}),
            "expects one value as argument 5, got Tensor[(3), float32]");
}

/// As TVM 0.18 writes them.
TEST(QnnOpsTest, TextComesBackAsItWas) {
  const std::string text = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4, 8, 8), uint8], %w: Tensor[(8, 4, 3, 3), int8]) {
  %0 = qnn.conv2d(%x, %w, 128, 0, 0.02f, 0.01f, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3], out_dtype="int32");
  %1 = qnn.requantize(%0, 0.0002f, 0, 0.05f, 3, axis=1, rounding="UPWARD", compute_dtype="int64", out_dtype="uint8");
  %2 = qnn.avg_pool2d(%1, 0.05f, 3, 0.05f, 3, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  %3 = qnn.leaky_relu(%2, 0.05f, 3, 0.04f, 4, alpha=0.1f);
  %4 = (%2, %3);
  %5 = (0.05f, 0.04f);
  %6 = (3, 4);
  %7 = qnn.concatenate(%4, %5, %6, 0.05f, 3, axis=1);
  qnn.dequantize(%7, 0.05f, 3, out_dtype="float32")
}
)";
  const IRModule module = ParseModule(text, "text");
  const std::string printed = PrintModule(module);
  EXPECT_EQ(PrintModule(ParseModule(printed, "again")), printed);
  for (const char* part : {"qnn.conv2d(", "compute_dtype=\"int64\"", "alpha=0.1f", "qnn.concatenate("}) {
    EXPECT_NE(printed.find(part), std::string::npos) << part << printed;
  }
}

TEST(QnnOpsTest, WhatRoundsLeavesRoundingOpen) {
  for (const Op& op : AllOps()) {
    const std::string& name = op->name();
    if (!name.starts_with("qnn.")) continue;
    const bool is_exact = name.ends_with("dequantize") || name == "qnn.dense" || name.find("conv2d") != name.npos ||
                          name == "qnn.batch_matmul" || name.ends_with("_nbits");
    EXPECT_EQ(static_cast<bool>(op->def().random_rounding), !is_exact) << name;
  }
}

}  // namespace
}  // namespace collage
