#include "dataflow/dataflow_graph.h"

#include <gtest/gtest.h>

#include <random>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;

std::vector<std::string> Labels(const DataflowGraph& graph) {
  std::vector<std::string> labels;
  for (int i = 0; i < static_cast<int>(graph.size()); ++i) labels.push_back(graph.LabelAt(i));
  return labels;
}

TEST(DataflowGraphTest, NumbersParametersOperatorsArgumentsFunction) {
  EXPECT_EQ(Labels(DataflowGraph(Std())),
            (std::vector<std::string>{"%x", "`nn.relu", "`abs", "abs", "nn.relu", "nn.relu", "fn"}));
  const DataflowGraph gpt(GptTail());
  EXPECT_EQ(gpt.size(), 26u);
  EXPECT_EQ(gpt.LabelAt(5), "const");
  EXPECT_EQ(gpt.LabelAt(10), "scalar");
  EXPECT_EQ(gpt.LabelAt(17), "multiply");
  EXPECT_EQ(gpt.node(9).outputs, (std::vector<int>{11, 15, 18}));
  EXPECT_EQ(gpt.node(18).inputs, (std::vector<int>{3, 9, 17}));
  EXPECT_TRUE(gpt.node(25).is_external);
  EXPECT_EQ(gpt.node(24).outputs, std::vector<int>{25});
  EXPECT_EQ(Labels(DataflowGraph(Tuples()))[15], "tuple");
}

TEST(DataflowGraphTest, UsingAValueTwiceGivesTwoEdges) {
  const Var x = Param("x", {2});
  const DataflowGraph graph(Typed({x}, MakeCall("add", {x, x})));
  EXPECT_EQ(graph.node(2).inputs, (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(graph.node(0).outputs, (std::vector<int>{2, 2}));
}

TEST(DataflowGraphTest, BranchesAreBasicBlocks) {
  const Var c = MakeVar("c", TensorType(Shape{}, kBool));
  const Var x = Param("x", {2});
  const Expr then_branch = MakeCall("abs", {x});
  const Expr else_branch = MakeCall("exp", {x});
  const auto branch = std::make_shared<IfNode>(c, then_branch, else_branch);
  const DataflowGraph graph(Typed({c, x}, branch));
  const int index = graph.IndexOf(branch);
  EXPECT_EQ(graph.node(graph.IndexOf(then_branch)).basic_block, index);
  EXPECT_EQ(graph.node(graph.IndexOf(else_branch)).basic_block, index);
  EXPECT_EQ(graph.node(index).basic_block, -1);
  EXPECT_EQ(graph.node(index).inputs, (std::vector<int>{0, graph.IndexOf(then_branch), graph.IndexOf(else_branch)}));
  EXPECT_EQ(graph.LabelAt(index), "if");
}

TEST(DataflowGraphTest, LetsNumberValueVariableBody) {
  const Var x = Param("x", {2});
  const Var y = Param("y", {2});
  const Expr value = MakeCall("abs", {x});
  const Expr body = MakeCall("exp", {y});
  const auto let = std::make_shared<LetNode>(y, value, body);
  const DataflowGraph graph(Typed({x}, let));
  EXPECT_EQ(Labels(graph), (std::vector<std::string>{"%x", "`abs", "abs", "%y", "`exp", "exp", "let", "fn"}));
  EXPECT_EQ(graph.node(3).inputs, std::vector<int>{2}) << "the value feeds its variable";
  EXPECT_EQ(graph.node(6).inputs, std::vector<int>{5}) << "the body feeds the let";
}

TEST(DataflowGraphTest, RecursionMakesNoCircle) {
  const Type tensor = TensorType(Shape{2}, kFloat32);
  const Var self = MakeVar("loop", FuncType({tensor}, tensor));
  const Var p = Param("p", {2});
  const Expr again = MakeCall(Expr(self), {MakeCall("abs", {p})});
  const Function loop = MakeFunction({p}, again);
  const Var x = Param("x", {2});
  const Expr start = MakeCall(Expr(self), {x});
  const DataflowGraph graph(MakeFunction({x}, std::make_shared<LetNode>(self, loop, start)));
  const int inner = graph.IndexOf(again);
  EXPECT_EQ(graph.node(inner).inputs, std::vector<int>{graph.IndexOf(As<CallNode>(again)->args()[0])});
  EXPECT_EQ(graph.node(inner).basic_block, graph.IndexOf(loop));
  EXPECT_EQ(graph.node(graph.IndexOf(start)).inputs, (std::vector<int>{graph.IndexOf(self), 0}));
  for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
    for (int input : graph.node(i).inputs) EXPECT_LT(input, i);
  }
}

/// A loop as ONNX models have it, by a function bound by a let that calls itself.
const char* kLoop = R"(
def @main(%n: int64, %c: bool, %y: Tensor[(1), float32]) {
  let %loop: fn (int64, int64, bool, Tensor[(1), float32], Tensor[(?, 1), float32])
      -> (int64, int64, bool, Tensor[(1), float32], Tensor[(?, 1), float32]) =
    fn (%i: int64, %max: int64, %go: bool, %y_in: Tensor[(1), float32], %scan: Tensor[(?, 1), float32]) {
      %0 = equal(%go, True);
      %1 = less(%i, %max);
      if (logical_and(%0, %1)) {
        %2 = cast(%i, dtype="float32");
        %3 = add(%y_in, %2);
        %4 = less(%3, 5f);
        %5 = squeeze(%4);
        %6 = abs(exp(tanh(sqrt(%scan))));
        %7 = (%6, expand_dims(%3, axis=1));
        %loop(add(%i, 1i64), %max, %5, %3, nn.relu(concatenate(%7)))
      } else {
        (%i, %max, %go, %y_in, %scan)
      }
    };
  %8 = %loop(0i64, %n, %c, %y, reshape(%y, newshape=[1, 1]));
  (%8.3,)
})";

TEST(DataflowGraphTest, LoopsByRecursion) {
  const Function function = ParseModule(kLoop).main();
  const DataflowGraph graph(function);
  ASSERT_EQ(graph.LabelAt(21), "add");
  EXPECT_EQ(graph.node(21).inputs, (std::vector<int>{15, 6, 20}));
  EXPECT_EQ(graph.node(21).outputs, (std::vector<int>{23, 36, 40}));
  ASSERT_EQ(graph.LabelAt(42), "if");
  EXPECT_EQ(graph.node(21).basic_block, 42);
  EXPECT_EQ(graph.node(42).basic_block, 43) << "the function";
  ASSERT_EQ(graph.LabelAt(40), "call_any");
  EXPECT_EQ(graph.node(40).inputs.size(), 5u) << "its arguments, not the variable that it calls";
  const std::vector<int> dominators = DominatorParents(graph);
  EXPECT_EQ(dominators[21], 40);
  EXPECT_EQ(dominators[20], 21);
  EXPECT_EQ(graph.node(48).inputs, (std::vector<int>{44, 45, 0, 1, 2, 47})) << "the call from outside";
}

TEST(DataflowGraphTest, UnusedFunctionsLeadNowhere) {
  const DataflowGraph graph(ParseModule(R"(
def @main(%x: Tensor[(2), float32]) {
  let %f = fn (%a: Tensor[(2), float32]) { add(%a, %a) };
  add(%x, %x)
})")
                                .main());
  const std::vector<int> parents = DominatorParents(graph);
  for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
    if (graph.LabelAt(i) != "`add") continue;
    EXPECT_EQ(graph.node(i).outputs.size(), 2u);
    EXPECT_EQ(parents[static_cast<size_t>(i)], -1) << "one of its uses does not reach the result";
  }
  EXPECT_EQ(graph.LabelAt(parents[0]), "add");
}

TEST(DataflowGraphTest, MatchDependsOnItsData) {
  const Type tensor = TensorType(Shape{2}, kFloat32);
  const Var x = Param("x", {2});
  const Var bound = MakeVar("b", tensor);
  Pattern pattern{Pattern::Kind::kVar, bound, nullptr, {}};
  const Expr data = MakeCall("abs", {x});
  const Expr rhs = MakeCall("exp", {bound});
  const auto match = std::make_shared<MatchNode>(data, std::vector<Clause>{{pattern, rhs}}, true);
  const DataflowGraph graph(MakeFunction({x}, match));
  const int index = graph.IndexOf(match);
  EXPECT_EQ(graph.node(graph.IndexOf(bound)).inputs, std::vector<int>{graph.IndexOf(data)});
  EXPECT_EQ(graph.node(graph.IndexOf(rhs)).basic_block, index);
  EXPECT_EQ(graph.node(index).inputs, (std::vector<int>{graph.IndexOf(data), graph.IndexOf(rhs)}));
}

TEST(DataflowGraphTest, PartitionsThatExistAreMarked) {
  const Var p = Param("p", {2});
  const Expr inner = MakeCall("abs", {p});
  const Function partition = MakeFunction({p}, inner, nullptr, {{"Primitive", 1}});
  const Var x = Param("x", {2});
  const Expr call = MakeCall(Expr(partition), {x});
  const DataflowGraph graph(Typed({x}, call));
  EXPECT_TRUE(graph.node(graph.IndexOf(inner)).is_in_primitive);
  EXPECT_FALSE(graph.node(graph.IndexOf(call)).is_in_primitive);
  EXPECT_EQ(graph.LabelAt(graph.IndexOf(call)), "call_prim");
}

TEST(DataflowGraphTest, KindsOfTuplesConstantsAndCalls) {
  const DataflowGraph graph(Tuples());
  EXPECT_EQ(graph.KindAt(15), OpPatternKind::kInjective);
  EXPECT_EQ(graph.KindAt(7), OpPatternKind::kInjective);
  EXPECT_EQ(graph.KindAt(0), OpPatternKind::kOpaque);
  EXPECT_EQ(graph.KindAt(9), OpPatternKind::kInjective);
  const DataflowGraph gpt(GptTail());
  EXPECT_EQ(gpt.KindAt(6), OpPatternKind::kOutEWiseFusable);
  EXPECT_EQ(gpt.KindAt(5), OpPatternKind::kElemWise);
  EXPECT_TRUE(gpt.CanInline(10)) << "a scalar";
  EXPECT_FALSE(gpt.CanInline(5)) << "weights";
  EXPECT_TRUE(gpt.IsInlinedInPartitions(5));
}

/// Dominators by definition: d post-dominates v if no path from v to the function avoids d.
bool Dominates(const DataflowGraph& graph, int dominator, int node) {
  std::vector<int> work{node};
  std::vector<char> seen(graph.size());
  while (!work.empty()) {
    const int at = work.back();
    work.pop_back();
    if (at == static_cast<int>(graph.size()) - 1) return false;
    for (int output : graph.node(at).outputs) {
      if (output == dominator || seen[static_cast<size_t>(output)] != 0) continue;
      seen[static_cast<size_t>(output)] = 1;
      work.push_back(output);
    }
  }
  return true;
}

TEST(DominatorTest, AgreesWithTheDefinitionOnRandomGraphs) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomFunction(8, random));
    const std::vector<int> parents = DominatorParents(graph);
    for (int i = 0; i + 1 < static_cast<int>(graph.size()); ++i) {
      if (graph.node(i).outputs.empty()) {
        EXPECT_EQ(parents[static_cast<size_t>(i)], -1);
        continue;
      }
      int expected = -1;
      for (int d = i + 1; expected < 0 && d < static_cast<int>(graph.size()); ++d) {
        if (Dominates(graph, d, i)) expected = d;
      }
      EXPECT_EQ(parents[static_cast<size_t>(i)], expected) << "node " << i;
    }
  }
}

TEST(DominatorTest, ValuesThatDoNotReachTheResultHaveNone) {
  // let unused = abs(x); exp(x): the abs and its variable lead nowhere, x feeds both.
  const Var x = Param("x", {2});
  const Var unused = Param("u", {2});
  const Expr abs = MakeCall("abs", {x});
  const Expr exp = MakeCall("exp", {x});
  const DataflowGraph graph(Typed({x}, std::make_shared<LetNode>(unused, abs, exp)));
  const std::vector<int> parents = DominatorParents(graph);
  EXPECT_EQ(parents[static_cast<size_t>(graph.IndexOf(abs))], -1);
  EXPECT_EQ(parents[0], -1);
  EXPECT_EQ(parents[static_cast<size_t>(graph.IndexOf(exp))], graph.IndexOf(graph.function()->body()));
}

TEST(DataflowGraphTest, DeepChainsNeedNoStack) {
  const Var x = Param("x", {2});
  Expr value = x;
  for (int i = 0; i < 100'000; ++i) value = MakeCall("nn.relu", {value});
  const DataflowGraph graph(Typed({x}, value));
  EXPECT_EQ(graph.size(), 100'003u);
  EXPECT_EQ(DominatorParents(graph)[2], 3);
}

}  // namespace
}  // namespace collage
