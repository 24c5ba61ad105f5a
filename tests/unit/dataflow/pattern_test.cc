#include "dataflow/pattern.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"

namespace collage {
namespace {

/// abs(x); relu; relu, the calls being nodes 2, 4 and 5.
Function TwoRelus() {
  const Var x = MakeVar("x", TensorType(Shape{5, 7}, kFloat32));
  const Expr abs = MakeCall("abs", {x});
  const Function function = MakeFunction({x}, MakeCall("nn.relu", {MakeCall("nn.relu", {abs})}));
  InferType(function);
  return function;
}

std::vector<std::vector<int>> Matches(const DataflowGraph& graph, const std::string& pattern) {
  std::vector<std::vector<int>> all;
  for (int root = 0; root < static_cast<int>(graph.size()); ++root) {
    MatchPattern(graph, *ParsePattern(pattern), root, [&](const std::vector<int>& inside) { all.push_back(inside); });
  }
  return all;
}

TEST(PatternTest, FindsEveryMatch) {
  const DataflowGraph graph(TwoRelus());
  const int abs = graph.IndexOf(As<CallNode>(As<CallNode>(graph.function()->body())->args()[0])->args()[0]);
  EXPECT_EQ(Matches(graph, "nn.relu(*)").size(), 2u);
  EXPECT_EQ(Matches(graph, "nn.relu((nn.relu(*) | abs(*)))").size(), 2u);
  EXPECT_EQ(Matches(graph, "abs(*)"), (std::vector<std::vector<int>>{{abs}}));
  EXPECT_TRUE(Matches(graph, "tanh(*)").empty());
}

TEST(PatternTest, AddCommutes) {
  const Var x = MakeVar("x", TensorType(Shape{4}, kFloat32));
  const Function function = MakeFunction({x}, MakeCall("add", {x, MakeCall("exp", {x})}));
  InferType(function);
  EXPECT_EQ(Matches(DataflowGraph(function), "add(exp(*), *)").size(), 1u);
  EXPECT_TRUE(Matches(DataflowGraph(function), "subtract(exp(*), *)").empty());
}

TEST(PatternTest, MistakesNameThePlace) {
  try {
    ParsePattern("nn.relu(*");
    FAIL() << "an open bracket was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kInput);
    EXPECT_NE(error.message().find("character 10"), std::string::npos) << error.message();
  }
  EXPECT_THROW(ParsePattern("nn.rellu(*)"), Error);
}

}  // namespace
}  // namespace collage
