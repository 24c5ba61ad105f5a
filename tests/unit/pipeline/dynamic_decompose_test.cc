// Transposed convolutions of images whose sizes a run knows: what takes their place computes the same.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/value.h"
#include "collage/ir/visitor.h"
#include "ir/eval/interpreter.h"
#include "runtime/random_inputs.h"
#include "transform/passes/dynamic/decompose.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// A module of one transposed convolution of `data`, `?` where a size is -1, by constant weights.
IRModule Transposed(const Shape& data, const Shape& weight, const Attrs& attrs) {
  std::vector<Dim> dims;
  for (const int64_t size : data) dims.push_back(size < 0 ? Dim::Any() : Dim(size));
  const Var x = MakeVar("x", TensorType(dims, kFloat32));
  const Tensor weights = Tensor::Empty(weight, kFloat32);
  FillRandom(weights, /*seed=*/3, -1, 1);
  const std::string name = "nn.conv" + std::to_string(data.size() - 2) + "d_transpose";
  return InferTypes(IRModule::FromFunction(MakeFunction({x}, MakeCall(name, {x, MakeConstant(weights)}, attrs))));
}

IRModule Decomposed(const IRModule& module) {
  return DecomposeDynamic(module, [](const CallNode&) { return false; });
}

bool HasTransposed(const IRModule& module) {
  bool has = false;
  PostOrder(module.main()->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    has = has || (call != nullptr && call->op() != nullptr && call->op()->name.ends_with("_transpose"));
  });
  return has;
}

/// Both compute the same of images of all `shapes`.
void ExpectSame(const Shape& data, const Shape& weight, const Attrs& attrs, const std::vector<Shape>& shapes) {
  const IRModule module = Transposed(data, weight, attrs);
  const IRModule decomposed = Decomposed(module);
  EXPECT_FALSE(HasTransposed(decomposed)) << PrintModule(decomposed);
  for (const Shape& shape : shapes) {
    const Tensor x = Tensor::Empty(shape, kFloat32);
    FillRandom(x, /*seed=*/5, -1, 1);
    const Value expected = Interpret(module, "main", {Value(x)});
    const Value actual = Interpret(decomposed, "main", {Value(x)});
    EXPECT_TRUE(ValuesEqual(expected, actual, 1e-5)) << ToString(expected) << "\nbecame " << ToString(actual) << "\n"
                                                     << PrintModule(decomposed);
  }
}

TEST(DynamicDecomposeTest, TransposedConvolutionsOfAnyStrideAndWindow) {
  for (int64_t stride = 1; stride <= 3; ++stride) {
    for (int64_t window = 1; window <= 5; ++window) {
      for (int64_t padding = 0; padding < 2 && 2 * padding < window; ++padding) {
        ExpectSame({1, 2, -1}, {2, 3, window}, {{"strides", V{stride}}, {"padding", V{padding}}},
                   {{1, 2, 1}, {1, 2, 2}, {1, 2, 7}});
      }
    }
  }
}

TEST(DynamicDecomposeTest, TransposedConvolutionsOfGroupsTapsApartAndUnevenBorders) {
  ExpectSame({-1, 4, -1, -1}, {4, 3, 2, 3}, {{"strides", V{2, 3}}, {"groups", 2}}, {{1, 4, 2, 3}, {2, 4, 1, 5}});
  ExpectSame({1, 2, -1, 5}, {2, 1, 3, 2}, {{"strides", V{2, 1}}, {"dilation", V{2, 3}}}, {{1, 2, 4, 5}});
  ExpectSame({1, 2, -1, -1}, {2, 2, 3, 3}, {{"strides", V{2, 2}}, {"padding", V{1, 0, 0, 1}}}, {{1, 2, 3, 4}});
  ExpectSame({1, 1, -1, -1, -1}, {1, 2, 3, 2, 1}, {{"strides", V{2, 2, 3}}, {"padding", V{1, 0, 0}}},
             {{1, 1, 2, 3, 2}});
}

// The result ends behind the last product, in zeros.
TEST(DynamicDecomposeTest, TransposedConvolutionsWithPaddingOfTheirResult) {
  ExpectSame({1, 2, -1}, {2, 2, 3}, {{"strides", V{2}}, {"padding", V{1}}, {"output_padding", V{1}}},
             {{1, 2, 1}, {1, 2, 4}});
  ExpectSame({1, 2, -1}, {2, 2, 2}, {{"strides", V{3}}, {"output_padding", V{2}}}, {{1, 2, 1}, {1, 2, 4}});
}

TEST(DynamicDecomposeTest, LeavesWhatHasKernelsOfItsOwn) {
  const Attrs attrs{{"strides", V{2}}};
  EXPECT_TRUE(HasTransposed(Decomposed(Transposed({1, 2, 8}, {2, 3, 2}, attrs))));
  EXPECT_TRUE(HasTransposed(Decomposed(Transposed({-1, 2, 8}, {2, 3, 2}, attrs)))) << "rows of a batch";
  EXPECT_TRUE(
      HasTransposed(DecomposeDynamic(Transposed({1, 2, -1}, {2, 3, 2}, attrs), [](const CallNode&) { return true; })));
}

}  // namespace
}  // namespace collage
