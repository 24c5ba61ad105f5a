// usual_forms_test.cc: what several operators of Relay say goes out as the one that ONNX has for it, and computes the
// same when it comes back.
#include "frontend/onnx_export/usual_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "collage/frontend/onnx.h"
#include "collage/frontend/onnx_export.h"
#include "collage/ir/infer_type.h"
#include "ir/eval/evaluate.h"
#include "onnx/onnx-ml.pb.h"
#include "runtime/compare.h"
#include "support/file.h"

namespace collage {
namespace {

using testing::ElementsAre;
using V = std::vector<int64_t>;

Tensor Random(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> real(-2, 2);
  const Tensor tensor = Tensor::Empty(shape, kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, real(random));
  return tensor;
}

Var Input(const Shape& shape, const char* name = "x") { return MakeVar(name, TensorType(shape, kFloat32)); }
Expr Weights(const Shape& shape, uint32_t seed = 7) { return MakeConstant(Random(shape, seed)); }
Expr Number(double value) { return MakeScalar(value, kFloat32); }
Expr Shaped(const Expr& x, const Shape& shape) { return MakeCall("reshape", {x}, {{"newshape", shape}}); }

onnx::GraphProto Exported(const IRModule& module) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(ExportOnnx(module)));
  return model.graph();
}

/// The types of the nodes that a function becomes, in order. What they compute when they are read again must be what
/// the function does.
std::vector<std::string> Forms(std::vector<Var> params, const Expr& body) {
  const IRModule module = InferTypes(IRModule::FromFunction(MakeFunction(std::move(params), body)));
  const TemporaryFolder folder;
  WriteOnnx(module, folder / "model.onnx");
  const IRModule back = ImportOnnx(folder / "model.onnx");
  std::vector<Tensor> inputs;
  for (const Var& param : module.main()->params()) {
    inputs.push_back(Random(AsTensorType(param->checked_type())->static_shape(), static_cast<uint32_t>(inputs.size())));
  }
  const std::vector<Tensor> wanted = Evaluate(module.main(), inputs);
  const std::vector<Tensor> got = Evaluate(back.main(), inputs);
  EXPECT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    const Comparison comparison = Compare(got[i], wanted[i], {1e-5, 1e-5});
    EXPECT_TRUE(comparison.agrees) << "result " << i << ": " << comparison.difference;
  }
  const onnx::GraphProto graph = Exported(module);
  std::vector<std::string> types;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Identity") types.push_back(node.op_type());
  }
  return types;
}

TEST(UsualFormsTest, ABiasBelongsToItsConvolution) {
  const Var x = Input({1, 3, 8, 9});
  const Expr conv = MakeCall("nn.conv2d", {x, Weights({4, 3, 3, 3})}, {{"padding", V{1, 1}}, {"strides", V{2, 1}}});
  EXPECT_THAT(Forms({x}, MakeCall("add", {conv, Weights({4, 1, 1})})), ElementsAre("Conv"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {Weights({1, 4, 1, 1}), conv})), ElementsAre("Conv"));
  EXPECT_THAT(Forms({x}, MakeCall("nn.bias_add", {conv, Weights({4})}, {{"axis", 1}})), ElementsAre("Conv"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {conv, Number(0.5)})), ElementsAre("Conv"));
  // Two of them, as a folded batch norm behind a bias leaves them, are one.
  const Expr twice = MakeCall("add", {MakeCall("add", {conv, Weights({4, 1, 1}, 1)}), Weights({4, 1, 1}, 2)});
  EXPECT_THAT(Forms({x}, MakeCall("nn.relu", {twice})), ElementsAre("Conv", "Relu"));
  // What varies along other dimensions is none.
  EXPECT_THAT(Forms({x}, MakeCall("add", {conv, Weights({9})})), ElementsAre("Conv", "Add"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {conv, Weights({2, 4, 1, 1})})), ElementsAre("Conv", "Add"));
  // What else is read stays.
  const Expr sum = MakeCall("add", {conv, Weights({4, 1, 1})});
  EXPECT_THAT(Forms({x}, MakeTuple({conv, sum})), ElementsAre("Conv", "Add"));
}

TEST(UsualFormsTest, BiasesOfOtherConvolutions) {
  const Var image = Input({1, 3, 5, 6});
  const Expr up = MakeCall("nn.conv2d_transpose", {image, Weights({3, 4, 2, 2})}, {{"strides", V{2, 2}}});
  EXPECT_THAT(Forms({image}, MakeCall("add", {up, Weights({4, 1, 1})})), ElementsAre("ConvTranspose"));
  const Var line = Input({1, 3, 9});
  const Expr along = MakeCall("nn.conv1d", {line, Weights({4, 3, 3})});
  EXPECT_THAT(Forms({line}, MakeCall("add", {along, Weights({4, 1})})), ElementsAre("Conv"));
}

TEST(UsualFormsTest, AnAddendBelongsToItsProduct) {
  const Var x = Input({2, 8});
  const Expr product = MakeCall("nn.dense", {x, Weights({5, 8})});
  EXPECT_THAT(Forms({x}, MakeCall("add", {product, Weights({5})})), ElementsAre("Gemm"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {Weights({1, 5}), product})), ElementsAre("Gemm"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {product, Weights({2, 5})})), ElementsAre("Gemm", "Add"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {product, Weights({3, 2, 5})})), ElementsAre("Gemm", "Add"));
}

TEST(UsualFormsTest, AScaleAndAShiftPerChannelAreABatchNorm) {
  const Var x = Input({2, 3, 4, 5});
  const Expr scaled = MakeCall("multiply", {x, Weights({3, 1, 1}, 1)});
  EXPECT_THAT(Forms({x}, MakeCall("nn.relu", {MakeCall("add", {scaled, Weights({3, 1, 1}, 2)})})),
              ElementsAre("BatchNormalization", "Relu"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {Number(1), MakeCall("multiply", {Weights({1, 3, 1, 1}), x})})),
              ElementsAre("BatchNormalization"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {MakeCall("multiply", {x, Number(2)}), Number(1)})),
              ElementsAre("Mul", "Add"));
  EXPECT_THAT(Forms({x}, MakeCall("add", {MakeCall("multiply", {x, Weights({5})}), Weights({5})})),
              ElementsAre("Mul", "Add"));
  const Var matrix = Input({2, 3});
  EXPECT_THAT(Forms({matrix}, MakeCall("add", {MakeCall("multiply", {matrix, Weights({3})}), Weights({3})})),
              ElementsAre("Mul", "Add"));
}

TEST(UsualFormsTest, AProductOfSequencesIsAMatMul) {
  const Var x = Input({2, 3, 8});
  const auto product = [&](const Expr& weight) {
    return Shaped(MakeCall("nn.dense", {Shaped(x, {6, 8}), weight}), {2, 3, 5});
  };
  const Expr biased = MakeCall("add", {product(Weights({5, 8})), Weights({5})});
  EXPECT_THAT(Forms({x}, biased), ElementsAre("MatMul", "Add"));
  // Weights that others read as they are stay as they are.
  const Expr shared = Weights({5, 8});
  EXPECT_THAT(Forms({x}, MakeTuple({product(shared), shared})), ElementsAre("Transpose", "MatMul"));
  // Heads that were merged for the product.
  const Var heads = Input({1, 3, 2, 4});
  const Expr merged = MakeCall("nn.dense", {Shaped(heads, {3, 8}), Weights({5, 8})});
  EXPECT_THAT(Forms({heads}, Shaped(merged, {1, 3, 5})), ElementsAre("Reshape", "MatMul"));
  EXPECT_THAT(Forms({heads}, Shaped(merged, {5, 3, 1})), ElementsAre("Reshape", "Gemm", "Reshape"));
}

TEST(UsualFormsTest, AProductOfBatchesOfBatchesIsAMatMul) {
  const Var q = Input({1, 2, 4, 8}, "q");
  const Var k = Input({1, 2, 3, 8}, "k");
  const auto scores = [](const Expr& a, const Expr& b) {
    return MakeCall("nn.batch_matmul", {a, b}, {{"transpose_b", true}});
  };
  const Expr flat = scores(Shaped(q, {2, 4, 8}), Shaped(k, {2, 3, 8}));
  EXPECT_THAT(Forms({q, k}, Shaped(flat, {1, 2, 4, 3})), ElementsAre("Transpose", "MatMul"));
  EXPECT_THAT(Forms({q, k}, Shaped(flat, {2, 12})),
              ElementsAre("Reshape", "Reshape", "Transpose", "MatMul", "Reshape"));
  const Var a = Input({2, 3, 4, 8}, "a");
  const Var b = Input({1, 8, 5}, "b");
  const Expr broadcast = MakeCall("nn.batch_matmul", {Shaped(a, {6, 4, 8}), b});
  EXPECT_THAT(Forms({a, b}, Shaped(broadcast, {2, 3, 4, 5})), ElementsAre("Reshape", "MatMul"));
}

TEST(UsualFormsTest, FunctionsThatImportingTakesApart) {
  const Var x = Input({2, 6, 3});
  const Expr line = MakeCall("add", {MakeCall("multiply", {x, Number(0.2)}), Number(0.5)});
  EXPECT_THAT(Forms({x}, MakeCall("clip", {line}, {{"a_min", 0.0}, {"a_max", 1.0}})), ElementsAre("HardSigmoid"));
  EXPECT_THAT(Forms({x}, MakeCall("clip", {line}, {{"a_min", 0.0}, {"a_max", 6.0}})),
              ElementsAre("Mul", "Add", "Clip"));
  const auto gelu = [&](double factor) {
    const Expr erf = MakeCall("erf", {MakeCall("multiply", {x, Number(factor)})});
    return MakeCall("multiply", {MakeCall("multiply", {x, Number(0.5)}), MakeCall("add", {erf, Number(1)})});
  };
  EXPECT_THAT(Forms({x}, gelu(std::sqrt(0.5))), ElementsAre("Gelu"));
  EXPECT_THAT(Forms({x}, gelu(0.7)), testing::Contains("Erf"));
  const Expr below = MakeCall("multiply", {MakeCall("minimum", {x, Number(0)}), Weights({6, 1})});
  EXPECT_THAT(Forms({x}, MakeCall("add", {MakeCall("nn.relu", {x}), below})), ElementsAre("PRelu"));
}

TEST(UsualFormsTest, WhatNothingReadsIsLeftOut) {
  const Var x = Input({2, 3, 8});
  const Expr product = Shaped(MakeCall("nn.dense", {Shaped(x, {6, 8}), Weights({5, 8})}), {2, 3, 5});
  const onnx::GraphProto graph = Exported(InferTypes(IRModule::FromFunction(MakeFunction({x}, product))));
  ASSERT_EQ(graph.initializer_size(), 1);
  EXPECT_THAT(graph.initializer(0).dims(), ElementsAre(8, 5));
}

}  // namespace
}  // namespace collage
