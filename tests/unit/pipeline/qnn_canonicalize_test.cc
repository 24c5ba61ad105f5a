// qnn_canonicalize_test.cc: what the quantised dialect becomes computes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/reference.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

std::multiset<std::string> OperatorsOf(const IRModule& module) {
  std::multiset<std::string> names;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) names.insert(call->op()->name);
  });
  return names;
}

bool HasDialect(const IRModule& module) {
  const std::multiset<std::string> names = OperatorsOf(module);
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("qnn.") && name != "qnn.quantize" && name != "qnn.dequantize";
  });
}

IRModule Canonical(const IRModule& module) { return RunPass(GetPass("qnn.CanonicalizeOps"), module); }

Tensor RandomTensor(const TensorTypeNode& type, double low, double high, std::mt19937& random) {
  const Tensor tensor = Tensor::Empty(type.static_shape(), type.dtype());
  std::uniform_real_distribution<double> uniform(low, high);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = uniform(random);
    tensor.Set(i, type.dtype().is_floating() ? value : std::round(value));
  }
  return tensor;
}

/// A call on parameters, from argument `first_constant` on constants, and values for the parameters.
std::pair<IRModule, std::vector<Tensor>> CallOf(const OpDef& op, const OpExample& example, size_t first_constant,
                                                std::mt19937& random) {
  std::vector<Var> params;
  std::vector<Tensor> inputs;
  std::vector<Expr> args;
  for (const Type& type : example.args) {
    std::vector<Expr> parts;
    for (const Type& leaf : FlattenTensorTypes(type)) {
      const Tensor value = RandomTensor(*AsTensorType(leaf), example.low, example.high, random);
      if (args.size() >= first_constant) {
        parts.push_back(MakeConstant(value));
        continue;
      }
      params.push_back(MakeVar("x" + std::to_string(params.size()), leaf));
      parts.push_back(params.back());
      inputs.push_back(value);
    }
    args.push_back(AsTupleType(type) == nullptr ? parts.at(0) : MakeTuple(parts));
  }
  const Function function = MakeFunction(params, MakeCall(op.name, args, example.attrs));
  return {InferTypes(IRModule::FromFunction(function)), inputs};
}

TEST(QnnCanonicalizeTest, EveryOperatorOfTheDialectKeepsItsMeaning) {
  std::mt19937 random(9);
  int tried = 0;
  for (const Op& op : AllOps()) {
    // Packed weights are multiplied by floats, and stay packed.
    if (!op->name().starts_with("qnn.") || op->name().ends_with("_nbits")) continue;
    for (const OpExample& example : op->def().examples) {
      for (const size_t first_constant : {size_t{1}, size_t{2}, SIZE_MAX}) {
        const auto [module, inputs] = CallOf(op->def(), example, first_constant, random);
        const IRModule after = Canonical(module);
        SCOPED_TRACE(PrintModule(module, {.metadata = false}) + PrintModule(after, {.metadata = false}));
        EXPECT_FALSE(HasDialect(after));
        // A factor that is not known is no fixed-point one: it is computed in floats.
        const bool is_exact = first_constant == 1 || example.attrs.StringOr("compute_dtype", "") != "int64";
        const Tensor expected = Evaluate(module.main(), inputs)[0], actual = Evaluate(after.main(), inputs)[0];
        const bool is_float = expected.dtype().is_floating();
        const Comparison comparison = Compare(actual, expected, {0, is_float ? 1e-6 : is_exact ? 0.0 : 1.0});
        EXPECT_TRUE(comparison.agrees) << comparison.difference;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 100);
}

TEST(QnnCanonicalizeTest, RootsAndLogarithmsKeepTheirMeaning) {
  for (const char* name : {"sqrt", "rsqrt", "log"}) {
    const IRModule module =
        ParseModule(std::string("def @main(%x: Tensor[(64), uint8]) { qnn.") + name + "(%x, 0.1f, 0, 0.02f, 3) }");
    const IRModule after = Canonical(module);
    EXPECT_FALSE(HasDialect(after));
    const Tensor x = Tensor::Empty({64}, kUInt8);
    FillRandom(x, 8, 1, 255);
    EXPECT_TRUE(BitEqual(Evaluate(after.main(), std::vector{x})[0], Evaluate(module.main(), std::vector{x})[0]))
        << name;
  }
}

/// A convolution, a bias and relu in the dialect, `rescaled` into bytes or floats at the end.
IRModule Layer(const std::string& bias, const std::string& rescaled) {
  Tensor weights = Tensor::Empty({6, 4, 3, 3}, kInt8), vector = Tensor::Empty({6}, kInt32);
  Tensor scales = Tensor::Empty({6}, kFloat32), products = Tensor::Empty({6}, kFloat32);
  FillRandom(weights, 1, -127, 127);
  FillRandom(vector, 2, -9000, 9000);
  for (int64_t i = 0; i < 6; ++i) {
    scales.Set(i, 0.001 * static_cast<double>(i + 2));
    products.Set(i, static_cast<double>(0.02f * scales.data<float>()[i]));
  }
  ParseOptions options;
  options.constants = {MakeConstant(weights), MakeConstant(vector), MakeConstant(scales), MakeConstant(products),
                       MakeConstant(vector.Reshaped({6, 1, 1}))};
  return ParseModule(R"(#[version = "0.0.5"]
      def @main(%x: Tensor[(1, 4, 9, 8), uint8]) {
        %0 = qnn.conv2d(%x, meta[relay.Constant][0], 121, 0, 0.02f, meta[relay.Constant][2], padding=[1, 1],
                        out_dtype="int32");
        %1 = )" + bias + R"(;
        %2 = nn.relu(%1);
        )" + rescaled + "\n      }",
                     "layer", options);
}

constexpr const char* kBiasAdd = "nn.bias_add(%0, meta[relay.Constant][1])";
constexpr const char* kRequantize =
    "qnn.requantize(%2, meta[relay.Constant][3], 0, 0.13f, 7, axis=1, out_dtype=\"uint8\")";

/// Judges what `module` became by what it is.
void ExpectSameNumbers(const IRModule& module, const IRModule& after) {
  const Tensor x = Tensor::Empty({1, 4, 9, 8}, kUInt8);
  FillRandom(x, 6, 0, 255);
  const Reference reference(module.main(), std::vector{x});
  const Comparison comparison = reference.Compare(0, Evaluate(after.main(), std::vector{x})[0]);
  EXPECT_TRUE(comparison.agrees) << comparison.difference;
  EXPECT_LT(comparison.max_relative_error, 0.01);
}

TEST(QnnCanonicalizeTest, SumsThatAreRescaledBecomeFloatsBetweenBytes) {
  const std::multiset<std::string> form{"qnn.dequantize", "qnn.dequantize", "nn.conv2d", "add",
                                        "nn.relu",        "qnn.quantize"};
  for (const char* bias : {kBiasAdd, "add(%0, meta[relay.Constant][4])", "add(meta[relay.Constant][4], %0)"}) {
    const IRModule module = Layer(bias, kRequantize);
    const IRModule after = RunPasses({"qnn.CanonicalizeOps", "FoldConstant"}, module);
    EXPECT_EQ(OperatorsOf(after), form) << PrintModule(after, {.metadata = false});
    ExpectSameNumbers(module, after);
  }
  const IRModule floats = Layer(kBiasAdd, "qnn.dequantize(%2, meta[relay.Constant][3], 0, axis=1)");
  const IRModule after = RunPasses({"qnn.CanonicalizeOps", "FoldConstant"}, floats);
  EXPECT_EQ(OperatorsOf(after),
            (std::multiset<std::string>{"qnn.dequantize", "qnn.dequantize", "nn.conv2d", "add", "nn.relu"}));
  ExpectSameNumbers(floats, after);
}

TEST(QnnCanonicalizeTest, WhatIsNoSimpleRescalingStaysInIntegers) {
  const std::vector<std::string> others{
      // Another scale, another zero point, ties upwards, another use of the sums.
      "qnn.requantize(%2, 0.0001f, 0, 0.13f, 7, axis=1, out_dtype=\"uint8\")",
      "qnn.requantize(%2, meta[relay.Constant][3], 5, 0.13f, 7, axis=1, out_dtype=\"uint8\")",
      "qnn.requantize(%2, meta[relay.Constant][3], 0, 0.13f, 7, axis=1, rounding=\"UPWARD\", out_dtype=\"uint8\")",
      "multiply(%2, 2)"};
  for (const std::string& rescaled : others) {
    const IRModule module = Layer(kBiasAdd, rescaled);
    const IRModule after = RunPasses({"qnn.CanonicalizeOps", "FoldConstant"}, module);
    EXPECT_FALSE(HasDialect(after));
    EXPECT_TRUE(OperatorsOf(after).contains("nn.bias_add"));
    bool has_integer_convolution = false;
    PostOrder(after.main(), [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      if (call == nullptr || call->op() == nullptr || call->op()->name != "nn.conv2d") return;
      has_integer_convolution = AsTensorType(expr->checked_type())->dtype() == kInt32;
    });
    EXPECT_TRUE(has_integer_convolution) << rescaled;
    const Tensor x = Tensor::Empty({1, 4, 9, 8}, kUInt8);
    FillRandom(x, 6, 0, 255);
    EXPECT_TRUE(BitEqual(Evaluate(after.main(), std::vector{x})[0], Evaluate(module.main(), std::vector{x})[0]))
        << rescaled;
  }
}

TEST(QnnCanonicalizeTest, WideResultsThatAreLimitedAreQuantisedToBytesAtOnce) {
  const std::string wide = "qnn.requantize(%2, meta[relay.Constant][3], 0, 0.13f, 7, axis=1, out_dtype=\"int32\")";
  const auto limited = [&](int low, int high) {
    return Layer(kBiasAdd, "cast(clip(" + wide + ", a_min=" + std::to_string(low) + "f, a_max=" + std::to_string(high) +
                               "f), dtype=\"uint8\")");
  };
  for (const auto& [low, high] : {std::pair(0, 255), std::pair(7, 60), std::pair(-1, 60)}) {
    const IRModule module = limited(low, high);
    const IRModule after = RunPasses({"qnn.CanonicalizeOps", "FoldConstant"}, module);
    EXPECT_EQ(OperatorsOf(after).count("clip"), low == 0 ? 0u : 1u);
    EXPECT_EQ(OperatorsOf(after).count("cast"), low < 0 ? 1u : 0u);
    ExpectSameNumbers(module, after);
  }
}

TEST(QnnCanonicalizeTest, SumsThatTwoReadKeepBothForms) {
  const IRModule module = Layer(kBiasAdd, std::string("(") + kRequantize + ", %2)");
  const IRModule after = RunPasses({"qnn.CanonicalizeOps", "FoldConstant"}, module);
  EXPECT_EQ(OperatorsOf(after).count("nn.conv2d"), 2u);
  ExpectSameNumbers(module, after);
}

TEST(QnnCanonicalizeTest, ItIsDoneBeforePartitioning) {
  EXPECT_FALSE(HasDialect(PrepareForPartitioning(Layer(kBiasAdd, kRequantize))));
}

}  // namespace
}  // namespace collage
