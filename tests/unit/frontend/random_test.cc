// random_test.cc: operators of ONNX that draw random numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "collage/frontend/onnx.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/random_draws.h"
#include "unit/frontend/model_file.h"

namespace collage {
namespace {

using onnx::TensorProto;

constexpr int64_t kCount = 100'000;

std::vector<Tensor> ResultsOf(const ModelFile& model, const std::vector<Tensor>& inputs = {}) {
  RandomDraws draws(11);
  return Evaluate(ImportOnnx(model.Write(), {}).main(), inputs, {.draws = &draws});
}

int NumCalls(const IRModule& module, const std::string& op) {
  int count = 0;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    count += call != nullptr && call->op() != nullptr && call->op()->name == op ? 1 : 0;
  });
  return count;
}

double Mean(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) sum += tensor.At(i);
  return sum / static_cast<double>(tensor.num_elements());
}

double Deviation(const Tensor& tensor) {
  const double mean = Mean(tensor);
  double sum = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) sum += std::pow(tensor.At(i) - mean, 2);
  return std::sqrt(sum / static_cast<double>(tensor.num_elements()));
}

/// Two nodes that draw alike, and their sum.
ModelFile& TwoDraws(ModelFile& model) {
  model.Output("y");
  for (const char* name : {"a", "b"}) {
    onnx::NodeProto& node = model.Node("RandomNormal", {}, {name});
    SetInts(node, "shape", {3, 4});
    SetFloat(node, "seed", 1);
  }
  model.Node("Add", {"a", "b"}, {"y"});
  return model;
}

TEST(RandomTest, CallsAreNeitherComputedAheadNorMerged) {
  ModelFile model(22);
  const IRModule module = ImportOnnx(TwoDraws(model).Write(), {});
  EXPECT_EQ(NumCalls(module, "random.normal"), 2);
  EXPECT_EQ(NumCalls(PrepareForPartitioning(module), "random.normal"), 2);
}

TEST(RandomTest, ProgramsDrawAnewInEachRunUnlessTheySeed) {
  ModelFile seeded(22), free(22);
  vm::Machine with_seed(vm::Compile(ImportOnnx(TwoDraws(seeded).Write(), {})));
  free.Output("y");
  SetInts(free.Node("RandomUniform", {}, {"y"}), "shape", {5});
  vm::Machine without(vm::Compile(ImportOnnx(free.Write(), {})));
  const auto run = [](vm::Machine& machine, const vm::RunOptions& options = {}) {
    return machine.Invoke("main", {}, options).tensor();
  };
  EXPECT_TRUE(BitEqual(run(with_seed), run(with_seed)));
  EXPECT_FALSE(BitEqual(run(without), run(without)));
  EXPECT_TRUE(BitEqual(run(without, {.random_seed = 3}), run(without, {.random_seed = 3})));
  EXPECT_FALSE(BitEqual(run(without, {.random_seed = 3}), run(without, {.random_seed = 4})));
}

TEST(RandomTest, DistributionsHaveTheirAttributes) {
  ModelFile model(22);
  model.Output("u").Output("n");
  onnx::NodeProto& uniform = model.Node("RandomUniform", {}, {"u"});
  SetInts(uniform, "shape", {kCount});
  SetFloat(uniform, "low", -3);
  SetFloat(uniform, "high", 1);
  onnx::NodeProto& normal = model.Node("RandomNormal", {}, {"n"});
  SetInts(normal, "shape", {kCount});
  SetFloat(normal, "mean", 5);
  SetFloat(normal, "scale", 0.25);
  SetInt(normal, "dtype", TensorProto::DOUBLE);
  const std::vector<Tensor> results = ResultsOf(model);
  EXPECT_NEAR(Mean(results[0]), -1, 0.02);
  EXPECT_NEAR(Deviation(results[0]), 4 / std::sqrt(12), 0.02);
  EXPECT_EQ(results[1].dtype(), kFloat64);
  EXPECT_NEAR(Mean(results[1]), 5, 0.005);
  EXPECT_NEAR(Deviation(results[1]), 0.25, 0.005);
}

TEST(RandomTest, LikeTakesShapeAndTypeOfItsInput) {
  ModelFile model(22);
  model.SymbolicInput("x", TensorProto::FLOAT16, {"n", "3"}).Output("y");
  model.Node("RandomNormalLike", {"x"}, {"y"});
  const Tensor y = ResultsOf(model, {Tensor::Zeros({4, 3}, kFloat16)})[0];
  EXPECT_EQ(y.shape(), (Shape{4, 3}));
  EXPECT_EQ(y.dtype(), kFloat16);
  EXPECT_GT(Deviation(y), 0.1);
}

TEST(RandomTest, BernoulliIsAsLikelyAsItsInputSays) {
  ModelFile model(22);
  model.Input("p", TensorProto::FLOAT, {2, kCount}).Output("y");
  SetInt(model.Node("Bernoulli", {"p"}, {"y"}), "dtype", TensorProto::INT32);
  const Tensor p = Tensor::Empty({2, kCount}, kFloat32);
  for (int64_t i = 0; i < 2 * kCount; ++i) p.Set(i, i < kCount ? 0.2 : 0.7);
  const Tensor y = ResultsOf(model, {p})[0];
  EXPECT_EQ(y.dtype(), kInt32);
  double low = 0, high = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    low += y.At(i);
    high += y.At(kCount + i);
  }
  EXPECT_NEAR(low / kCount, 0.2, 0.01);
  EXPECT_NEAR(high / kCount, 0.7, 0.01);
}

TEST(RandomTest, MultinomialDrawsClassesByTheirLogLikelihoods) {
  ModelFile model(22);
  model.Input("x", TensorProto::FLOAT, {2, 3}).Output("y");
  onnx::NodeProto& node = model.Node("Multinomial", {"x"}, {"y"});
  SetInt(node, "sample_size", kCount);
  SetInt(node, "dtype", TensorProto::INT64);
  const double likely[2][3] = {{0.1, 0.3, 0.6}, {1, 0, 0}};
  const Tensor x = Tensor::Empty({2, 3}, kFloat32);
  for (int64_t i = 0; i < 6; ++i) x.Set(i, std::max(std::log(likely[i / 3][i % 3]) + 2, -100.0));
  const Tensor y = ResultsOf(model, {x})[0];
  ASSERT_EQ(y.shape(), (Shape{2, kCount}));
  for (int64_t row = 0; row < 2; ++row) {
    std::vector<double> counts(3);
    for (int64_t i = 0; i < kCount; ++i) ++counts.at(static_cast<size_t>(y.At(row * kCount + i)));
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(counts[c] / kCount, likely[row][c], 0.01);
  }
}

TEST(RandomTest, DropoutKeepsTheMeanWhereTheRunTrains) {
  ModelFile model(22);
  model.Input("x", TensorProto::FLOAT, {kCount}).Input("r", TensorProto::FLOAT, {}).Input("t", TensorProto::BOOL, {});
  model.Output("y").Output("m");
  model.Node("Dropout", {"x", "r", "t"}, {"y", "m"});
  const Tensor x = Tensor::Empty({kCount}, kFloat32);
  for (int64_t i = 0; i < kCount; ++i) x.Set(i, 2);
  const Tensor ratio = MakeScalar(0.75, kFloat32)->value();
  const std::vector<Tensor> trains = ResultsOf(model, {x, ratio, MakeScalar(1, kBool)->value()});
  EXPECT_NEAR(Mean(trains[1]), 0.25, 0.01);
  for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(trains[0].At(i), trains[1].At(i) != 0 ? 8 : 0);
  const std::vector<Tensor> infers = ResultsOf(model, {x, ratio, MakeScalar(0, kBool)->value()});
  EXPECT_TRUE(BitEqual(infers[0], x));
  EXPECT_EQ(Mean(infers[1]), 1);
}

}  // namespace
}  // namespace collage
