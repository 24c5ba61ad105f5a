// dnnl_quantised_test.cc: oneDNN's rows of 8-bit integers against the reference.
#include <gtest/gtest.h>

#include <random>

#include "conformance/dnnl_rows.h"
#include "conformance/quantised_calls.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point
using V = std::vector<int64_t>;

constexpr double kShareOneOff = 0.005;

Options OptionsFor(const RowCall& call) {
  Options options{.low = -1, .high = 1, .all_bytes = true, .share_one_off = kShareOneOff};
  if (call.has_channels) options.layouts = ChannelsLast(call.function);
  return options;
}

class DnnlQuantised : public DnnlTest {};

TEST_F(DnnlQuantised, ContractionsAgreeInEveryRow) {
  for (const QuantisedAnchor& a : QuantisedAnchors()) {
    for (const RowCall& call : QuantisedRows(a)) ExpectRow("dnnl." + call.row, call.function, OptionsFor(call));
  }
}

TEST_F(DnnlQuantised, IntegersWithZeroPointsOfRunTime) {
  for (const RowCall& call : IntegerRows()) {
    Options options = OptionsFor(call);
    // The zero point is one of the inputs.
    options.low = -3;
    options.high = 3;
    ExpectRow("dnnl." + call.row, call.function, options);
  }
}

TEST_F(DnnlQuantised, PoolsBinaryOperatorsAndConversions) {
  for (const RowCall& call : QuantisedOthers()) {
    ExpectRow("dnnl." + call.row, call.function, OptionsFor(call));
    if (call.has_channels && call.row.find("pool") == std::string::npos) {
      Options plain = OptionsFor(call);
      plain.layouts = {};
      ExpectRow("dnnl." + call.row, call.function, plain);
    }
  }
}

TEST_F(DnnlQuantised, ScalesAlongChannelsInConversions) {
  const Constant scales = MakeConstant(RandomTensor({16}, kFloat32, 0.01, 0.02, 61));
  const Constant zeros = MakeConstant(Tensor::Zeros({16}, kInt8));
  const Var x = Input("x", {2, 16, 5, 7}), q = Input("q", {2, 16, 5, 7}, kInt8);
  const Options options{.all_bytes = true, .share_one_off = kShareOneOff};
  ExpectRow("dnnl.quantize",
            MakeFunction({x}, MakeCall("qnn.quantize", {x, scales, zeros}, {{"axis", 1}, {"out_dtype", kInt8}})),
            options);
  ExpectRow("dnnl.dequantize",
            MakeFunction({q}, MakeCall("qnn.dequantize", {q, scales, zeros}, {{"axis", 1}, {"out_dtype", kFloat32}})),
            options);
}

TEST_F(DnnlQuantised, WeightsOfFloatDataAreDequantised) {
  const Var x = Input("x", {1, 16, 9, 8}), y = Input("y", {17, 24});
  const Layout last = Layout::kChannelsLast;
  ExpectRow("dnnl.conv2d", MakeFunction({x}, MakeCall("nn.conv2d", {x, QuantisedWeights({24, 16, 3, 3}, 0, 62)})),
            {.layouts = {{last}, {last}}});
  ExpectRow("dnnl.dense", MakeFunction({y}, MakeCall("nn.dense", {y, QuantisedWeights({32, 24}, 0, 63, kUInt8)})));
}

/// A convolution of random size, dtypes, window and groups.
Function RandomConvolution(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const int64_t groups = pick(0, 3) == 0 ? pick(2, 4) : 1;
  const bool depthwise = pick(0, 4) == 0;
  const int64_t per_group = depthwise ? 1 : pick(1, 20);
  const int64_t in = depthwise ? pick(2, 40) : groups * per_group;
  const int64_t out = depthwise ? in : groups * pick(1, 20);
  const DataType data = pick(0, 1) == 0 ? kUInt8 : kInt8;
  const DataType weights = pick(0, 1) == 0 ? kUInt8 : kInt8;
  const V kernel{pick(1, 4), pick(1, 4)};
  const V padding{pick(0, kernel[0] - 1), pick(0, kernel[1] - 1)};
  const Var x = Input("x", {pick(1, 2), in, pick(5, 12), pick(5, 12)}, data);
  const Expr conv =
      MakeCall("nn.conv2d",
               {Dequantize(x, 0.01, data == kInt8 ? pick(-20, 20) : pick(100, 140), data),
                QuantisedWeights({out, depthwise ? 1 : per_group, kernel[0], kernel[1]}, 0,
                                 static_cast<uint32_t>(pick(100, 999)), weights)},
               {{"groups", depthwise ? in : groups}, {"padding", padding}, {"strides", V{pick(1, 2), pick(1, 2)}}});
  const Expr biased = Plus(conv, RandomConstant({out, 1, 1}, 64));
  return MakeFunction({x}, Quantize(MakeCall("nn.relu", {biased}), 0.02, data == kInt8 ? -128 : 0, data));
}

TEST_F(DnnlQuantised, ConvolutionsOfRandomSizes) {
  if (!HasVnni(ThisMachine().features)) GTEST_SKIP() << "this processor has no VNNI instructions";
  std::mt19937 random(7);
  int computed = 0;
  constexpr int kCases = 60;
  for (int i = 0; i < kCases; ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const Function function = RandomConvolution(random);
    const BoundaryLayouts layouts = ChannelsLast(function);
    if (!Dnnl().RelayToRuntime({function, layouts, 1}))
      continue;  // groups of odd sizes have reference implementations only
    ++computed;
    ExpectRow("dnnl.qnn.conv2d_bias_relu", function,
              {.layouts = layouts, .num_threads = 1 + i % 2, .all_bytes = true, .share_one_off = kShareOneOff});
  }
  EXPECT_GT(computed, kCases / 2);
}

TEST_F(DnnlQuantised, ProductsOfRandomSizes) {
  std::mt19937 random(8);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const auto pick = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const int64_t m = pick(1, 40), n = pick(1, 70), k = pick(1, 90);
    const Var x = Input("x", {m, k}, kUInt8);
    const Expr product = MakeCall("nn.dense", {Dequantize(x, 0.01, pick(0, 255)), QuantisedWeights({n, k}, 0, 65)});
    ExpectRow("dnnl.qnn.dense_bias", MakeFunction({x}, Quantize(Plus(product, RandomConstant({n}, 66)), 0.05, 90)),
              {.num_threads = 1 + i % 2, .all_bytes = true, .share_one_off = kShareOneOff});
  }
}

TEST_F(DnnlQuantised, DeclinesWithReasons) {
  const Var x = Input("x", {4, 24}, kUInt8);
  const auto dense = [&](const Expr& weights, const Expr& data) {
    return MakeFunction({x}, MakeCall("nn.dense", {data, weights}));
  };
  const Expr data = Dequantize(x, 0.01, 3);
  const Tensor wide = RandomTensor({8, 24}, kUInt8, 0, 255, 67);
  EXPECT_EQ(RefusalOf(dense(Dequantize(MakeConstant(wide), 0.01, 3), data)),
            "takes weights of 8 bits around their zero point only");
  EXPECT_EQ(RefusalOf(dense(QuantisedWeights({8, 24}, 1, 68), data)),
            "takes scales along the result's channels only (axis 0), got axis 1");
  EXPECT_EQ(RefusalOf(dense(RandomConstant({8, 24}, 69), data)),
            "multiplies 8-bit data by 8-bit weights only, got float32");
  EXPECT_EQ(RefusalOf(dense(QuantisedWeights({8, 24}, 0, 70), Dequantize(x, -0.01, 3))), "takes positive scales only");
  const Var y = Input("y", {4, 24}, kInt8);
  EXPECT_EQ(
      RefusalOf(MakeFunction({y}, MakeCall("nn.dense", {y, MakeConstant(RandomTensor({8, 24}, kInt8, -9, 9, 72))}))),
      "gives int32, floats or quantised results of bytes, not int8");
  const Var p = Input("p", {4, 24}, kUInt8);
  EXPECT_EQ(RefusalOf(MakeFunction({x, p}, Quantize(Mul(data, Dequantize(p, 0.1, 0)), 0.01, 0))),
            "adds and subtracts integers with zero points only");
  const Expr parts = MakeTuple({data, Dequantize(p, 0.02, 3)});
  EXPECT_EQ(RefusalOf(MakeFunction({x, p}, Quantize(MakeCall("concatenate", {parts}, {{"axis", 1}}), 0.01, 3))),
            "concatenates values of one scale only");
  EXPECT_EQ(RefusalOf(MakeFunction({x}, MakeCall("nn.softmax", {data}))), "computes this of floats only");
}

}  // namespace
}  // namespace collage
