#include "collage/transform/passes.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"
#include "transform/passes.h"

namespace collage {
namespace {

Expr Random(Shape shape, uint64_t seed) {
  const Tensor tensor = Tensor::Empty(std::move(shape), kFloat32);
  FillRandom(tensor, seed);
  for (float& value : tensor.span<float>()) value = value * 0.4f + 0.6f;  // positive: variances are among them
  return MakeConstant(tensor);
}

std::map<std::string, int> CountOps(const Function& function) {
  std::map<std::string, int> counts;
  PostOrder(function, [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) ++counts[call->op()->name];
  });
  return counts;
}

/// conv, batch_norm with statistics, relu, and a factor per channel.
IRModule ConvBatchNorm() {
  const Var x = MakeVar("x", TensorType(Shape{1, 3, 8, 8}, kFloat32));
  const Expr conv = MakeCall("nn.conv2d", {x, Random({4, 3, 3, 3}, 1)}, {{"padding", std::vector<int64_t>{1, 1}}});
  const Expr norm = MakeCall("nn.batch_norm", {conv, Random({4}, 2), Random({4}, 3), Random({4}, 4), Random({4}, 5)});
  const Expr scaled = MakeCall("multiply", {MakeTupleGetItem(norm, 0), Random({4, 1, 1}, 6)});
  return InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.relu", {scaled}))));
}

TEST(PassesTest, EqualConstantsAreOne) {
  const Var x = MakeVar("x", TensorType(Shape{1, 4}, kFloat32));
  const auto sum = [&](const Expr& constant) { return MakeCall("add", {x, constant}); };
  const auto merged = [&](std::vector<Expr> fields) {
    const Function function = MakeFunction({x}, MakeTuple(std::move(fields)));
    InferType(function);
    return EliminateCommonSubexpr(function);
  };
  EXPECT_EQ(CountOps(merged({sum(Random({4}, 1)), sum(Random({4}, 1))}))["add"], 1);
  EXPECT_EQ(CountOps(merged({sum(Random({4}, 1)), sum(Random({4}, 2))}))["add"], 2) << "other values";
  EXPECT_EQ(CountOps(merged({sum(Random({4}, 1)), sum(Random({1, 4}, 1))}))["add"], 2) << "another shape";
  const Expr floats = MakeConstant(Tensor::Zeros({3}, kFloat32)), integers = MakeConstant(Tensor::Zeros({3}, kInt32));
  const Function other_types = merged({floats, integers});
  const std::vector<Expr>& fields = As<TupleNode>(other_types->body())->fields();
  EXPECT_NE(fields[0], fields[1]) << "another type";
}

TEST(PassesTest, BatchNormAndFactorsEndInTheWeights) {
  const IRModule prepared = PrepareForPartitioning(ConvBatchNorm());
  EXPECT_EQ(CountOps(prepared.main()), (std::map<std::string, int>{{"add", 1}, {"nn.conv2d", 1}, {"nn.relu", 1}}));
}

TEST(PassesTest, EachPassKeepsTheMeaning) {
  const IRModule before = ConvBatchNorm();
  const Tensor x = Tensor::Empty({1, 3, 8, 8}, kFloat32);
  FillRandom(x, 9);
  const std::vector<Tensor> inputs{x};
  const Tensor expected = Evaluate(before.main(), inputs)[0];
  IRModule module = before;
  for (const char* name :
       {"SimplifyInference", "FoldConstant", "SimplifyExpr", "FoldScaleAxis", "EliminateCommonSubexpr"}) {
    module = RunPass(GetPass(name), module);
    const Comparison comparison = Compare(Evaluate(module.main(), inputs)[0], expected, {1e-5, 1e-6});
    EXPECT_TRUE(comparison.agrees) << name << ": " << comparison.difference;
  }
}

TEST(PassesTest, AnUnknownPassHasNearMisses) {
  try {
    GetPass("FoldConstants");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("'FoldConstant'"), std::string::npos) << error.hint();
  }
}

TEST(PassesTest, PaddingGoesIntoTheConvolution) {
  const Var x = MakeVar("x", TensorType(Shape{1, 3, 8, 8}, kFloat32));
  AttrValue::List widths;
  for (const std::vector<int64_t>& pair : {std::vector<int64_t>{0, 0}, {0, 0}, {1, 2}, {3, 4}})
    widths.emplace_back(pair);
  const Expr pad = MakeCall("nn.pad", {x, MakeScalar(0, kFloat32)}, {{"pad_width", widths}});
  const IRModule module =
      InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall("nn.conv2d", {pad, Random({4, 3, 3, 3}, 1)}))));
  const IRModule simplified = RunPass(GetPass("SimplifyExpr"), module);
  EXPECT_EQ(CountOps(simplified.main()), (std::map<std::string, int>{{"nn.conv2d", 1}}));
  EXPECT_EQ(As<CallNode>(simplified.main()->body())->attrs().Ints("padding"), (std::vector<int64_t>{1, 3, 2, 4}));
  EXPECT_TRUE(TypeEqual(simplified.main()->body()->checked_type(), module.main()->body()->checked_type()));
}

}  // namespace
}  // namespace collage
