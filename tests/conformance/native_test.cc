// native_test.cc: the native toolchain against the reference: every operator's examples, products of odd sizes, fused chains.
#include <gtest/gtest.h>

#include "conformance/conformance.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"

namespace collage {
namespace {

using conformance::ExampleFunction;
using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;

const Toolchain& Native() { return conformance::BuiltinToolchain("native"); }

/// Whether the operator's weights must be constant for the native toolchain.
bool WantsConstantWeight(const std::string& name) { return name == "nn.dense" || name.starts_with("nn.conv"); }

/// The layout combination that the toolchain likes best when all inputs of rank 4 may be channels-last.
BoundaryLayouts BestLayouts(const Function& function) {
  std::vector<bool> inputs;
  for (const Var& param : function->params()) inputs.push_back(AsTensorType(param->checked_type())->rank() == 4);
  std::vector<bool> outputs;
  for (const Type& type : FlattenTensorTypes(function->body()->checked_type())) {
    outputs.push_back(AsTensorType(type)->rank() == 4);
  }
  return Native().Layouts(function, inputs, outputs).front();
}

TEST(NativeTest, OperatorsAgreeOnTheirExamples) {
  int tried = 0;
  for (const Op& op : AllOps()) {
    if (op->def().is_reshape) continue;
    for (const OpExample& example : op->def().examples) {
      const Function function = ExampleFunction(op->def(), example, WantsConstantWeight(op->name()) ? 1 : SIZE_MAX);
      InferType(function);
      const CallNode* call = As<CallNode>(function->body());
      if (!Native().SupportsCall(*call).ok()) continue;
      SCOPED_TRACE(op->name());
      conformance::Options options{.layouts = BestLayouts(function), .low = example.low, .high = example.high};
      ExpectAgrees(Native(), function, options);
      ++tried;
    }
  }
  EXPECT_GE(tried, 100);
}

TEST(NativeTest, ProductsOfOddSizesWithEpilogueAgree) {
  for (const auto& [m, k, n] : {std::tuple{1, 7, 5}, {13, 33, 47}, {12, 64, 32}, {25, 17, 100}, {3, 128, 16}}) {
    const Var x = Input("x", {m, k});
    const Expr dense = MakeCall("nn.dense", {x, RandomConstant({n, k}, 1)});
    const Expr biased = MakeCall("add", {dense, RandomConstant({n}, 2)});
    ExpectAgrees(Native(), MakeFunction({x}, MakeCall("nn.relu", {biased})));
  }
}

TEST(NativeTest, ThreadsShareTheWork) {
  const Var x = Input("x", {128, 256});
  const Expr dense = MakeCall("nn.dense", {x, RandomConstant({96, 256}, 1)});
  ExpectAgrees(Native(), MakeFunction({x}, MakeCall("tanh", {dense})), {.num_threads = 2});
}

TEST(NativeTest, AttentionSoftmaxWithScaleAndMaskAgrees) {
  const Var x = Input("x", {3, 17, 33});
  const Var mask = Input("mask", {1, 1, 33});
  const Expr scaled = MakeCall("multiply", {x, MakeScalar(0.125, kFloat32)});
  ExpectAgrees(Native(), MakeFunction({x, mask}, MakeCall("nn.softmax", {MakeCall("add", {scaled, mask})})));
}

TEST(NativeTest, GeluWrittenOutAgrees) {
  const Var x = Input("x", {9, 70});
  const Expr erf = MakeCall("erf", {MakeCall("divide", {x, MakeScalar(1.41421356, kFloat32)})});
  const Expr factor = MakeCall("add", {erf, MakeScalar(1, kFloat32)});
  const Expr half = MakeCall("multiply", {MakeCall("multiply", {x, factor}), MakeScalar(0.5, kFloat32)});
  ExpectAgrees(Native(), MakeFunction({x}, half), {.low = -5, .high = 5});
}

}  // namespace
}  // namespace collage
