// fuse_ops_rule_test.cc: rule FuseOps against the functions that the pass makes.
#include <gtest/gtest.h>

#include <algorithm>

#include "partition/partition_rule.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;

TEST(FuseOpsRuleTest, FindsWhatThePassFuses) {
  const Var x = Param("x", {4, 6});
  const Expr halves = MakeCall("split", {x}, {{"indices_or_sections", 2}, {"axis", 1}});
  const Expr parts =
      MakeTuple({MakeCall("nn.relu", {MakeTupleGetItem(halves, 0)}), MakeCall("tanh", {MakeTupleGetItem(halves, 1)})});
  const Expr joined = MakeCall("concatenate", {parts}, {{"axis", 1}});
  const Expr product = MakeCall("nn.dense", {joined, Weights({5, 6})});
  const DataflowGraph graph(Typed({x}, MakeCall("nn.relu", {MakeCall("add", {product, Weights({5})})})));
  const auto labels = [&](int max_calls) {
    std::vector<std::string> found;
    RuleLog log;
    for (const CandidatePartition& one : FuseOpsRule(max_calls)->AllCandidates(graph, AnyToolchain(), log)) {
      EXPECT_TRUE(one.sub_graph.CheckValid(graph, {.max_exits = 1}).ok());
      found.push_back(one.sub_graph.OperatorLabel(graph));
    }
    return found;
  };
  EXPECT_EQ(labels(256), (std::vector<std::string>{"split+nn.relu+tanh+concatenate", "nn.dense+add+nn.relu"}));
  EXPECT_EQ(labels(2), (std::vector<std::string>{"nn.relu+concatenate", "nn.dense+add"})) << "of at most two operators";
}

TEST(FuseOpsRuleTest, ToolchainsThatFuseByKindTakeAllThatThePassFuses) {
  const Var x = Param("x", {4, 6});
  Expr chain = x;
  for (int i = 0; i < 6; ++i) chain = MakeCall("tanh", {MakeCall("abs", {chain})});
  const DataflowGraph graph(Typed({x}, chain));
  const auto longest = [&](FusionStyle style) {
    RuleLog log;
    size_t length = 0;
    const AnyToolchain toolchain("acme", style, /*max_depth=*/8);
    for (const CandidatePartition& one : GatherPartitionRule(toolchain)->AllCandidates(graph, toolchain, log)) {
      length = std::max(length, one.sub_graph.members().size());
    }
    return length;
  };
  EXPECT_EQ(longest(FusionStyle::kTVMFusion), 12U) << "longer than the toolchain's own depth";
  EXPECT_EQ(longest(FusionStyle::kArbitrary), 8U);
}

}  // namespace
}  // namespace collage
