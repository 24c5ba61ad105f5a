// Shapes of results that follow from sizes which a program computes.
#include "bytecode/result_shapes.h"

#include <gtest/gtest.h>

#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "unit/support/throws.h"

namespace collage::vm {
namespace {

Function FunctionOf(const std::string& text) {
  return InferTypes(ParseModule("#[version = \"0.0.5\"]\n" + text, "t.relay")).main();
}

/// A kernel that knows of its shapes what `function` says.
DynamicKernel KernelOf(const Function& function) {
  DynamicKernel kernel;
  kernel.takes_dimensions = true;
  std::vector<Expr> exprs;
  kernel.sizes = FindDynamicSizes(function, &exprs);
  for (const Expr& expr : exprs) {
    const ConstantNode* constant = As<ConstantNode>(expr);
    if (constant != nullptr && IsSizeConstant(constant->checked_type())) {
      kernel.step_constants.push_back(constant->value());
    }
  }
  return kernel;
}

TEST(ResultShapes, SizesThatFollowFromShapesAreComputed) {
  const Function function = FunctionOf(R"(def @main(%x: Tensor[(?, ?, 8), float32]) {
    %0 = shape_of(%x, dtype="int64");
    %1 = strided_slice(%0, begin=[0], end=[2]);
    %2 = reshape(%x, newshape=[-3, 8]);
    (dyn.reshape(tanh(%2), %0), dyn.full(1f, %1)) })");
  EXPECT_TRUE(HasResultShapes(function).ok());
  const Type type = ResultTypeOf(KernelOf(function), {TensorType(Shape{3, 5, 8}, kFloat32)});
  EXPECT_EQ(ToString(type), "(Tensor[(3, 5, 8), float32], Tensor[(3, 5), float32])");
}

TEST(ResultShapes, SizesThatAreDataAreNotKnown) {
  const Function function =
      FunctionOf("def @main(%x: Tensor[(?, 8), float32], %n: Tensor[(2), int64]) { dyn.reshape(tanh(%x), %n) }");
  EXPECT_EQ(HasResultShapes(function).reason().text, "the sizes of 'dyn.reshape' do not follow from shapes");
  const std::vector<Type> types{TensorType(Shape{3, 8}, kFloat32), TensorType(Shape{2}, kInt64)};
  ExpectError([&] { ResultTypeOf(KernelOf(function), types); }, ErrorCategory::kInput,
              "the sizes of 'dyn.reshape' are not known");
}

TEST(ResultShapes, ShapesThatDoNotFitAreRefused) {
  const Function function =
      FunctionOf("def @main(%x: Tensor[(?, 8), float32], %y: Tensor[(?, 8), float32]) { add(%x, %y) }");
  const std::vector<Type> types{TensorType(Shape{3, 8}, kFloat32), TensorType(Shape{2, 8}, kFloat32)};
  ExpectError([&] { ResultTypeOf(KernelOf(function), types); }, ErrorCategory::kInput, "add");
}

TEST(ResultShapes, ConstantsOfFewIntegersMaySizeThings) {
  EXPECT_TRUE(IsSizeConstant(TensorType(Shape{4}, kInt64)));
  EXPECT_TRUE(IsSizeConstant(TensorType(Shape{}, kInt32)));
  EXPECT_FALSE(IsSizeConstant(TensorType(Shape{4}, kFloat32)));
  EXPECT_FALSE(IsSizeConstant(TensorType(Shape{4000}, kInt64)));
}

}  // namespace
}  // namespace collage::vm
