// SimplifyExpr: convolutions of fewer taps have the same results.
#include <gtest/gtest.h>

#include <random>

#include "collage/ir/op.h"
#include "collage/transform/passes.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

constexpr int kConvolutions = 400;

class Taps : public testing::Test {
 protected:
  int64_t Draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Tensor Numbers(const Shape& shape) {
    const Tensor tensor = Tensor::Empty(shape, kFloat32);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, static_cast<double>(Draw(-4, 4)));
    return tensor;
  }

  /// A convolution of %x by constant weights, of any geometry that has a result.
  Expr Convolution(const Var& x, const Tensor& weights, int rank) {
    while (true) {
      std::vector<int64_t> padding, dilation, strides;
      for (int i = 0; i < 2 * rank; ++i) padding.push_back(Draw(0, 9));
      for (int i = 0; i < rank; ++i) dilation.push_back(Draw(1, 8));
      for (int i = 0; i < rank; ++i) strides.push_back(Draw(1, 3));
      bool has_result = true;
      for (size_t i = 0; i < strides.size(); ++i) {
        const int64_t size = AsTensorType(x->checked_type())->static_shape()[i + 2];
        const int64_t reach = dilation[i] * (weights.shape()[i + 2] - 1) + 1;
        has_result = has_result && size + padding[i] + padding[i + strides.size()] >= reach;
      }
      if (!has_result) continue;
      return MakeCall(rank == 1 ? "nn.conv1d" : "nn.conv2d", {x, MakeConstant(weights)},
                      {{"padding", padding}, {"dilation", dilation}, {"strides", strides}});
    }
  }

  std::mt19937 random_{7};
};

int64_t TapsOf(const Function& function) {
  const CallNode* call = As<CallNode>(function->body());
  const Shape shape = AsTensorType(call->args()[1]->checked_type())->static_shape();
  int64_t taps = 1;
  for (size_t i = 2; i < shape.size(); ++i) taps *= shape[i];
  return taps;
}

TEST_F(Taps, ThoseThatMeetPaddingAloneVanishAndNothingElseChanges) {
  int changed = 0;
  for (int i = 0; i < kConvolutions; ++i) {
    const int rank = 1 + i % 2;
    Shape data{1, 2}, kernel{3, 2};
    for (int d = 0; d < rank; ++d) {
      data.push_back(Draw(1, 9));
      kernel.push_back(Draw(1, 4));
    }
    const Var x = MakeVar("x", TensorType(data, kFloat32));
    x->set_checked_type(x->type_annotation());
    const IRModule before =
        RunPass(GetPass("InferType"), IRModule::FromFunction(MakeFunction({x}, Convolution(x, Numbers(kernel), rank))));
    const IRModule after = RunPass(GetPass("SimplifyExpr"), before);
    const std::vector<Tensor> inputs{Numbers(data)};
    const Tensor wanted = Evaluate(before.main(), inputs)[0], found = Evaluate(after.main(), inputs)[0];
    ASSERT_EQ(found.shape(), wanted.shape());
    for (int64_t k = 0; k < wanted.num_elements(); ++k) ASSERT_EQ(found.At(k), wanted.At(k));
    changed += TapsOf(after.main()) < TapsOf(before.main()) ? 1 : 0;
  }
  EXPECT_GT(changed, kConvolutions / 10);
}

TEST_F(Taps, WeightsThatAreNotFiniteStay) {
  const Var x = MakeVar("x", TensorType(Shape{1, 2, 3, 3}, kFloat32));
  x->set_checked_type(x->type_annotation());
  Tensor weights = Numbers({3, 2, 3, 3});
  const auto taps = [&] {
    const Expr call = MakeCall("nn.conv2d", {x, MakeConstant(weights)},
                               {{"padding", std::vector<int64_t>{5, 5}}, {"dilation", std::vector<int64_t>{5, 5}}});
    const IRModule module = RunPass(GetPass("InferType"), IRModule::FromFunction(MakeFunction({x}, call)));
    return TapsOf(RunPass(GetPass("SimplifyExpr"), module).main());
  };
  EXPECT_EQ(taps(), 1);
  weights.Set(0, std::numeric_limits<double>::infinity());
  EXPECT_EQ(taps(), 9);
}

}  // namespace
}  // namespace collage
