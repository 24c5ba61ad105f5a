#include "dataflow/dominators.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/ir/text.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;

/// Whether a path leads from `node` to the function that does not touch `dominator`.
bool Avoids(const DataflowGraph& graph, int dominator, int node) {
  if (node == dominator) return false;
  if (graph.node(node).is_external) return true;
  const std::vector<int>& outputs = graph.node(node).outputs;
  return std::any_of(outputs.begin(), outputs.end(), [&](int output) { return Avoids(graph, dominator, output); });
}

TEST(DominatorTreeTest, AgreesWithTheDefinitionOnRandomGraphs) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomFunction(3, random));
    const DominatorTree tree(graph);
    const int size = static_cast<int>(graph.size());
    for (int node = 0; node < size; ++node) {
      for (int child : tree.Children(node)) EXPECT_EQ(tree.Parent(child), node);
      const IndexSet below = Downstream(graph, node);
      for (int other = 0; other < size; ++other) {
        if (!tree.Dominates(other, node)) continue;
        EXPECT_TRUE(other == node || below.Contains(other));
      }
      if (graph.node(node).outputs.empty()) continue;
      for (int other = 0; other < size; ++other) {
        EXPECT_EQ(tree.Dominates(other, node), !Avoids(graph, other, node)) << other << " of " << node;
      }
    }
  }
}

TEST(DominatorTreeTest, DownstreamOfASharedValue) {
  const DataflowGraph graph(
      ParseModule("def @main(%x: Tensor[(2), float32]) { %0 = exp(%x); (abs(%0), tanh(%x)) }").main());
  std::vector<std::string> labels;
  for (int index : Downstream(graph, 2).Members()) labels.push_back(graph.LabelAt(index));
  EXPECT_EQ(graph.LabelAt(2), "`exp");
  EXPECT_EQ(labels, (std::vector<std::string>{"exp", "abs", "tuple", "fn"}));
}

TEST(DominatorTreeTest, DeepChainsNeedNoStack) {
  const Var x = Param("x", {2});
  Expr value = x;
  for (int i = 0; i < 100'000; ++i) value = MakeCall("nn.relu", {value});
  const DataflowGraph graph(Typed({x}, value));
  const DominatorTree tree(graph);
  EXPECT_TRUE(tree.Dominates(100'001, 2));
  EXPECT_FALSE(tree.Dominates(2, 100'001));
}

}  // namespace
}  // namespace collage
