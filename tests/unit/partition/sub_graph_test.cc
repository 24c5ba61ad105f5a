#include "partition/sub_graph.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "ir/eval/evaluate.h"
#include "partition/rewrite.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// relu(x); abs; exp of the relu; add of both: a diamond.
struct Diamond {
  Var x = MakeVar("x", TensorType(Shape{3, 4}, kFloat32));
  Expr relu = MakeCall("nn.relu", {x});
  Expr abs = MakeCall("abs", {relu});
  Expr exp = MakeCall("exp", {relu});
  Expr add = MakeCall("add", {abs, exp});
  Function function = MakeFunction({x}, add);
  Diamond() { InferType(function); }
};

TEST(SubGraphTest, NodeSetsOfADiamond) {
  const Diamond d;
  const DataflowGraph graph(d.function);
  const SubGraph sub_graph(graph, {graph.IndexOf(d.relu), graph.IndexOf(d.abs)});
  EXPECT_EQ(sub_graph.entry(), std::vector<int>{graph.IndexOf(d.relu)});
  EXPECT_EQ(sub_graph.input(), std::vector<int>{graph.IndexOf(d.x)});
  EXPECT_EQ(sub_graph.exit(), (std::vector<int>{graph.IndexOf(d.relu), graph.IndexOf(d.abs)}));
  EXPECT_EQ(sub_graph.depth(), 2);
  EXPECT_FALSE(sub_graph.CheckValid(graph, {}).ok()) << "relu is a tap";
  EXPECT_TRUE(sub_graph.CheckValid(graph, {.allow_taps = true}).ok());
  EXPECT_FALSE(sub_graph.CheckValid(graph, {.max_exits = 1, .allow_taps = true}).ok());
}

TEST(SubGraphTest, PathsThatLeaveAndComeBackAreRefused) {
  const Diamond d;
  const DataflowGraph graph(d.function);
  const SubGraph around(graph, {graph.IndexOf(d.relu), graph.IndexOf(d.abs), graph.IndexOf(d.add)});
  EXPECT_FALSE(around.CheckValid(graph, {.allow_taps = true}).ok()) << "exp lies outside";
  const SubGraph whole(graph,
                       {graph.IndexOf(d.relu), graph.IndexOf(d.abs), graph.IndexOf(d.exp), graph.IndexOf(d.add)});
  EXPECT_TRUE(whole.CheckValid(graph, {.max_exits = 1}).ok());
}

TEST(SubGraphTest, CombineFindsBothSidesOfADiamond) {
  const Diamond d;
  const DataflowGraph graph(d.function);
  RuleLog log;
  const testing_graphs::AnyToolchain toolchain("acme", FusionStyle::kArbitrary, /*max_depth=*/2);
  const auto candidates = GatherPartitionRule(toolchain)->AllCandidates(graph, toolchain, log);
  const auto has = [&](std::vector<int> inside) {
    const IndexSet wanted(graph.size(), inside);
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const CandidatePartition& c) { return c.sub_graph.inside() == wanted; });
  };
  // Depth 2 and one exit: the sum with either or both of its operands, never relu with one of its users.
  EXPECT_TRUE(has({graph.IndexOf(d.abs), graph.IndexOf(d.add)}));
  EXPECT_TRUE(has({graph.IndexOf(d.exp), graph.IndexOf(d.add)}));
  EXPECT_TRUE(has({graph.IndexOf(d.abs), graph.IndexOf(d.exp), graph.IndexOf(d.add)}));
  EXPECT_FALSE(has({graph.IndexOf(d.relu), graph.IndexOf(d.abs)}));
  EXPECT_EQ(candidates.size(), 7u);
}

TEST(SubGraphTest, PrimitiveOnesMakePlaceForWhatTheyHold) {
  const NestedSubGraph inner{{4}, {{"Composite", "inner"}}, {}};
  const NestedSubGraph primitive{{4, 5}, {{"Primitive", 1}, {"Compiler", "acme"}}, {inner}};
  const NestedSubGraph outer{{4, 5}, {{"Composite", "outer"}}, {primitive}};
  const NestedSubGraph other{{7}, {{"Composite", "other"}}, {}};
  std::vector<NestedSubGraph> left = WithoutPrimitives({primitive, other});
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].attrs.String("Composite"), "inner");
  EXPECT_EQ(left[0].inside, inner.inside);
  EXPECT_EQ(left[1].attrs.String("Composite"), "other");
  left = WithoutPrimitives({outer});
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].attrs.String("Composite"), "outer");
  ASSERT_EQ(left[0].nested.size(), 1U);
  EXPECT_EQ(left[0].nested[0].attrs.String("Composite"), "inner");
}

TEST(SubGraphTest, RewritingKeepsTheMeaning) {
  const Diamond d;
  const DataflowGraph graph(d.function);
  const testing_graphs::AnyToolchain toolchain("acme", FusionStyle::kArbitrary, /*max_depth=*/2);
  const CandidatePartition first{"first", SubGraph(graph, {graph.IndexOf(d.relu)}), &toolchain};
  const CandidatePartition second{
      "second", SubGraph(graph, {graph.IndexOf(d.abs), graph.IndexOf(d.exp), graph.IndexOf(d.add)}), &toolchain};
  const auto rewritten = RewritePartitions(graph, {{&first, PlainLayouts(1, 1), 0}, {&second, PlainLayouts(1, 1), 0}});
  ASSERT_TRUE(rewritten.has_value());
  const Tensor x = Tensor::Empty({3, 4}, kFloat32);
  FillRandom(x, 7);
  const std::vector<Tensor> inputs{x};
  const Comparison comparison = Compare(Evaluate(*rewritten, inputs)[0], Evaluate(d.function, inputs)[0], {0, 0});
  EXPECT_TRUE(comparison.agrees) << comparison.difference;
}

}  // namespace
}  // namespace collage
