// openvino_test.cc: OpenVINO against the reference: partitions of several operators, layouts, threads, and what it
// fuses.
#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "conformance/conformance.h"

namespace collage {
namespace {

using conformance::BuiltinToolchain;
using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;
using V = std::vector<int64_t>;

class OpenVino : public testing::Test {
 protected:
  void SetUp() override {
    const Availability here = BuiltinToolchain("openvino").Probe();
    if (!here.available) GTEST_SKIP() << here.reason;
  }
  const Toolchain& toolchain_ = BuiltinToolchain("openvino");
};

Expr Conv(const Expr& data, const Shape& weight, uint32_t seed, Attrs attrs) {
  return MakeCall("nn.conv2d", {data, RandomConstant(weight, seed, -0.2, 0.2)}, std::move(attrs));
}

Function ConvBlock() {
  const Var x = Input("x", {1, 16, 14, 13});
  Expr y = Conv(x, {16, 16, 3, 3}, 1, {{"padding", V{1, 1}}});
  y = MakeCall("add", {y, RandomConstant({16, 1, 1}, 2)});
  y = MakeCall("add", {y, x});
  y = MakeCall("nn.relu", {y});
  y = MakeCall("nn.max_pool2d", {y}, {{"pool_size", V{2, 2}}, {"strides", V{2, 2}}});
  return MakeFunction({x}, y);
}

TEST_F(OpenVino, RunsAConvolutionBlockInEveryLayout) {
  for (const Layout in : {Layout::kPlain, Layout::kChannelsLast}) {
    for (const Layout out : {Layout::kPlain, Layout::kChannelsLast}) {
      for (int threads : {1, 2})
        ExpectAgrees(toolchain_, ConvBlock(), {.layouts = {{in}, {out}}, .num_threads = threads});
    }
  }
}

TEST_F(OpenVino, OffersChannelsLastOnlyWhereEligible) {
  const auto layouts = toolchain_.Layouts(ConvBlock(), {true, false}, {true});
  ASSERT_EQ(layouts.size(), 2u);
  EXPECT_EQ(layouts[0].inputs, (std::vector{Layout::kChannelsLast, Layout::kPlain}));
  EXPECT_EQ(toolchain_.Layouts(ConvBlock(), {false}, {false}).size(), 1u);
}

TEST_F(OpenVino, MultipliesFlattenedSequences) {
  const Var x = Input("x", {2, 7, 24});
  Expr y = MakeCall("reshape", {x}, {{"newshape", V{-1, 24}}});
  y = MakeCall("nn.dense", {y, RandomConstant({10, 24}, 3)});
  y = MakeCall("reshape", {y}, {{"newshape", V{2, 7, 10}}});
  y = MakeCall("add", {y, RandomConstant({10}, 4)});
  ExpectAgrees(toolchain_, MakeFunction({x}, y));
}

TEST_F(OpenVino, RunsAttention) {
  const Shape heads{2, 3, 8, 4};
  const Var q = Input("q", heads), k = Input("k", heads), v = Input("v", heads);
  const auto flat = [](const Expr& e) { return MakeCall("reshape", {e}, {{"newshape", V{6, 8, 4}}}); };
  Expr scores = MakeCall("nn.batch_matmul", {flat(q), flat(k)}, {{"transpose_b", true}});
  scores = MakeCall("nn.softmax", {MakeCall("multiply", {scores, MakeScalar(0.5, kFloat32)})});
  Expr y = MakeCall("nn.batch_matmul", {scores, flat(v)});
  y = MakeCall("reshape", {y}, {{"newshape", V{2, 3, 8, 4}}});
  y = MakeCall("transpose", {y}, {{"axes", V{0, 2, 1, 3}}});
  ExpectAgrees(toolchain_, MakeFunction({q, k, v}, y));
}

TEST_F(OpenVino, RunsAttentionOfSharedHeads) {
  // Two heads of keys serve four of queries: the keys reach the product through reshapes of five dimensions.
  const Var q = Input("q", {1, 4, 8, 4}), k = Input("k", {1, 2, 1, 8, 4});
  Expr keys = MakeCall("broadcast_to", {k}, {{"shape", V{1, 2, 2, 8, 4}}});
  keys = MakeCall("reshape", {MakeCall("reshape", {keys}, {{"newshape", V{1, 4, 8, 4}}})}, {{"newshape", V{4, 8, 4}}});
  const Expr queries = MakeCall("reshape", {q}, {{"newshape", V{4, 8, 4}}});
  const Expr scores = MakeCall("nn.batch_matmul", {queries, keys}, {{"transpose_b", true}});
  ExpectAgrees(toolchain_, MakeFunction({q, k}, MakeCall("reshape", {scores}, {{"newshape", V{1, 4, 8, 8}}})));
}

TEST_F(OpenVino, ReturnsSeveralResults) {
  const Var x = Input("x", {3, 6});
  const Expr parts = MakeCall("split", {x}, {{"indices_or_sections", V{2}}, {"axis", 1}});
  const Expr y = MakeTuple({MakeTupleGetItem(parts, 1), MakeCall("tanh", {MakeTupleGetItem(parts, 0)})});
  ExpectAgrees(toolchain_, MakeFunction({x}, y));
}

TEST_F(OpenVino, CopiesAResultThatIsAnInput) {
  const Var x = Input("x", {3, 6});
  ExpectAgrees(toolchain_, MakeFunction({x}, MakeTuple({MakeCall("tanh", {x}), x})));
  const Var image = Input("image", {1, 3, 4, 5});
  const Function copy = MakeFunction({image}, MakeCall("copy", {image}));
  ExpectAgrees(toolchain_, copy, {.layouts = {{Layout::kChannelsLast}, {Layout::kChannelsLast}}});
}

TEST_F(OpenVino, InlinesInnerFunctions) {
  const Var p = Input("p", {3, 6});
  const Function inner =
      MakeFunction({p}, MakeCall("exp", {MakeCall("negative", {p})}), nullptr, {{"Composite", "x.y"}});
  const Var x = Input("x", {3, 6});
  ExpectAgrees(toolchain_,
               MakeFunction({x}, MakeCall("add", {MakeCall(inner, {x}), MakeCall(inner, {MakeCall("abs", {x})})})));
}

TEST_F(OpenVino, DeclinesWithReasons) {
  const Var x = Input("x", {3, 6}, kFloat64);
  const Expr y = MakeCall("tanh", {x});
  InferType(MakeFunction({x}, y));
  const Result<void> answer = toolchain_.SupportsCall(*As<CallNode>(y));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.reason().text, "its argument is float64, which the CPU plugin computes in another precision");
  EXPECT_EQ(answer.reason().origin, "openvino");
}

}  // namespace
}  // namespace collage
