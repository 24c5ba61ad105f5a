#include "driver/covers/layout_analysis.h"

#include <gtest/gtest.h>

#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;

Expr Conv(const Expr& data) {
  return MakeCall("nn.conv2d", {data, Weights({4, 4, 1, 1})}, {{"kernel_size", std::vector<int64_t>{1, 1}}});
}

TEST(LayoutAnalysisTest, SpreadsFromConvolutionsOverWhatKeepsALayout) {
  // conv; relu; concatenate along channels with another conv's result; pool; flatten; dense: up to the pool.
  const Var x = Param("x", {1, 4, 8, 8});
  const Expr first = Conv(x);
  const Expr relu = MakeCall("nn.relu", {first});
  const Expr second = Conv(relu);
  const Expr both = MakeCall("concatenate", {MakeTuple({relu, second})}, {{"axis", 1}});
  const Expr pool = MakeCall("nn.max_pool2d", {both}, {{"pool_size", std::vector<int64_t>{8, 8}}});
  const Expr flat = MakeCall("nn.batch_flatten", {pool});
  const Expr dense = MakeCall("nn.dense", {flat, Weights({3, 8})});
  const DataflowGraph graph(Typed({x}, dense));
  const std::vector<bool> eligible = ChannelsLastEligible(graph);
  const auto is = [&](const Expr& expr) { return eligible[static_cast<size_t>(graph.IndexOf(expr))]; };
  for (const Expr& expr : {first, relu, second, both, pool}) {
    EXPECT_TRUE(is(expr)) << graph.LabelAt(graph.IndexOf(expr));
  }
  EXPECT_FALSE(is(x)) << "a parameter is plain";
  EXPECT_FALSE(is(flat)) << "rank 2";
  EXPECT_FALSE(is(dense));
}

TEST(LayoutAnalysisTest, ResultsArePlainAndOtherGraphsHaveNone) {
  const Var x = Param("x", {1, 4, 8, 8});
  const Expr conv = Conv(x);
  const DataflowGraph graph(Typed({x}, MakeTuple({conv, MakeCall("nn.relu", {conv})})));
  for (bool eligible : ChannelsLastEligible(graph)) EXPECT_FALSE(eligible);
  for (bool eligible : ChannelsLastEligible(DataflowGraph(Tuples()))) EXPECT_FALSE(eligible) << "no spatial operator";
}

TEST(LayoutAnalysisTest, ConcatenationAlongAnotherAxisKeepsNoLayout) {
  const Var x = Param("x", {1, 4, 8, 8});
  const Expr relu = MakeCall("nn.relu", {x});
  const Expr wide = MakeCall("concatenate", {MakeTuple({relu, relu})}, {{"axis", 2}});
  const Expr exp = MakeCall("exp", {wide});
  const DataflowGraph graph(Typed({x}, Conv(exp)));
  const std::vector<bool> eligible = ChannelsLastEligible(graph);
  EXPECT_TRUE(eligible[static_cast<size_t>(graph.IndexOf(exp))]);
  EXPECT_TRUE(eligible[static_cast<size_t>(graph.IndexOf(wide))]) << "what makes it may write it so";
  EXPECT_FALSE(eligible[static_cast<size_t>(graph.IndexOf(relu))]) << "but it is not read so";
}

}  // namespace
}  // namespace collage
