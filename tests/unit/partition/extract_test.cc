#include "partition/extract.h"

#include <gtest/gtest.h>

#include "collage/ir/structural.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "partition/rewrite.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;

std::vector<int> Nodes(const std::vector<BoundaryValue>& values) {
  std::vector<int> nodes;
  for (const BoundaryValue& value : values) nodes.push_back(value.node);
  return nodes;
}

bool SameStructure(const Expr& a, const Expr& b) { return StructuralEqual(a, b); }

/// add(a, b) = 6 and add(c, d) = 7 under a subtract 8; parameters a b c d = 0..3, operators 4 5.
struct TwoAdds {
  Var a = Param("a", {2}), b = Param("b", {2}), c = Param("c", {2}), d = Param("d", {2});
  Function function = Typed({a, b, c, d}, MakeCall("subtract", {MakeCall("add", {a, b}), MakeCall("add", {c, d})}));
};

TEST(ExtractTest, TwoExitsLastResultNumbersFirst) {
  const DataflowGraph graph(TwoAdds().function);
  const SubGraph sub_graph(graph, {6, 7});
  EXPECT_FALSE(sub_graph.CheckValid(graph, {.max_exits = 1}).ok());
  EXPECT_TRUE(sub_graph.CheckValid(graph, {.max_exits = 2}).ok());
  const ExtractedFunction extracted = Extract(graph, sub_graph);
  EXPECT_EQ(Nodes(extracted.boundary.inputs), (std::vector<int>{2, 3, 0, 1}));
  EXPECT_EQ(Nodes(extracted.boundary.outputs), (std::vector<int>{6, 7}));
  const Var w = Param("w", {2}), x = Param("x", {2}), y = Param("y", {2}), z = Param("z", {2});
  EXPECT_TRUE(SameStructure(extracted.function,
                            Typed({w, x, y, z}, MakeTuple({MakeCall("add", {y, z}), MakeCall("add", {w, x})}))));
}

TEST(ExtractTest, OneParameterForAnInputUsedTwice) {
  const Var x = Param("x", {2});
  const Expr relu = MakeCall("nn.relu", {x});
  const DataflowGraph graph(Typed({x}, MakeCall("add", {relu, relu})));
  const ExtractedFunction extracted = Extract(graph, SubGraph(graph, {graph.IndexOf(graph.function()->body())}));
  EXPECT_EQ(extracted.function->params().size(), 1u);
}

TEST(ExtractTest, ConstantsAreInlined) {
  const DataflowGraph graph(GptTail());
  const ExtractedFunction extracted = Extract(graph, SubGraph(graph, {6, 8}));
  EXPECT_EQ(Nodes(extracted.boundary.inputs), std::vector<int>{0});
  EXPECT_EQ(SubGraph(graph, {6, 8}).input(), (std::vector<int>{0, 5, 7})) << "as a sub-graph, tensors are inputs";
}

TEST(ExtractTest, ATupleFromOutsideComesInFieldByField) {
  const DataflowGraph graph(Tuples());
  const ExtractedFunction extracted = Extract(graph, SubGraph(graph, {16}));
  EXPECT_EQ(Nodes(extracted.boundary.inputs), (std::vector<int>{10, 14}));
  const Var a = Param("a", {1, 1, 2, 3, 2}), b = Param("b", {1, 1, 2, 3, 2});
  EXPECT_TRUE(
      SameStructure(extracted.function, Typed({a, b}, MakeCall("concatenate", {MakeTuple({a, b})}, {{"axis", 0}}))));
}

TEST(ExtractTest, ProjectionsOfWhatAnOperatorReturnsOutside) {
  const DataflowGraph graph(Tuples());
  const ExtractedFunction extracted = Extract(graph, SubGraph(graph, {7, 8}));
  ASSERT_EQ(extracted.boundary.inputs.size(), 1u);
  EXPECT_EQ(extracted.boundary.inputs[0], (BoundaryValue{6, 1}));
  const Var a = Param("a", {1, 3, 4});
  EXPECT_TRUE(SameStructure(extracted.function,
                            Typed({a}, MakeCall("reshape", {a}, {{"newshape", std::vector<int64_t>{1, 3, 2, 2}}}))));
}

TEST(ExtractTest, TupleResultsAreFlattened) {
  const DataflowGraph graph(Tuples());
  const Boundary one = BoundaryOf(graph, SubGraph(graph, {6}));
  EXPECT_EQ(one.outputs, (std::vector<BoundaryValue>{{6, 0}, {6, 1}, {6, 2}}));
  const Boundary two = BoundaryOf(graph, SubGraph(graph, {6, 7, 8}));
  EXPECT_EQ(two.outputs, (std::vector<BoundaryValue>{{6, 0}, {6, 1}, {6, 2}, {8, -1}}));
}

TEST(ExtractTest, NestedSubGraphsBecomeFunctions) {
  const DataflowGraph graph(Std());
  SubGraph sub_graph(graph, {3, 4, 5});
  sub_graph.nested = {{{4, 5}, {{"Composite", "relus"}}, {}}};
  const Function function = Extract(graph, sub_graph).function;
  const CallNode* call = As<CallNode>(function->body());
  ASSERT_NE(call, nullptr);
  const FunctionNode* composite = As<FunctionNode>(call->callee());
  ASSERT_NE(composite, nullptr);
  EXPECT_EQ(composite->attrs().String("Composite"), "relus");
  EXPECT_EQ(As<CallNode>(call->args()[0])->op()->name, "abs");
}

TEST(RewriteTest, CandidatesThatWrapNothingChangeNothing) {
  const Function function = Std();
  const DataflowGraph graph(function);
  const AnyToolchain toolchain;
  EXPECT_EQ(RewriteNested(graph, {{"r", SubGraph(graph, {4, 5}), &toolchain}}), function);
}

TEST(RewriteTest, WrapsAllCandidatesAtOnce) {
  const DataflowGraph graph(Std());
  const AnyToolchain toolchain;
  RuleLog log;
  const auto rule = PrimitiveRule(CompositeRule("c", DFPatternRule("p", ParsePattern("nn.relu(*)"), {})));
  const auto rewritten = RewriteNested(graph, rule->AllCandidates(graph, toolchain, log));
  ASSERT_TRUE(rewritten.has_value());
  const auto wrapped = [](const Expr& arg) {
    const Var inner = Param("p", {5, 7});
    const Function composite = MakeFunction({inner}, MakeCall("nn.relu", {inner}), nullptr, {{"Composite", "c"}});
    const Var outer = Param("q", {5, 7});
    const Function primitive =
        MakeFunction({outer}, MakeCall(Expr(composite), {outer}), nullptr, {{"Primitive", 1}, {"Compiler", "acme"}});
    return MakeCall(Expr(primitive), {arg});
  };
  const Var x = Param("x", {5, 7});
  EXPECT_TRUE(SameStructure(*rewritten, Typed({x}, wrapped(wrapped(MakeCall("abs", {x}))))));
}

TEST(RewriteTest, ATapIsReturnedBesideTheResult) {
  // {relu, abs} with relu used by the final add as well.
  const Var x = Param("x", {2});
  const Expr relu = MakeCall("nn.relu", {x});
  const Expr abs = MakeCall("abs", {relu});
  const DataflowGraph graph(Typed({x}, MakeCall("add", {abs, relu})));
  SubGraph sub_graph(graph, {graph.IndexOf(relu), graph.IndexOf(abs)});
  EXPECT_FALSE(sub_graph.CheckValid(graph, {}).ok());
  ASSERT_TRUE(sub_graph.CheckValid(graph, {.max_exits = 2, .allow_taps = true}).ok());
  const AnyToolchain toolchain;
  const auto rewritten = RewriteNested(graph, {{"r", sub_graph.Wrapped({{"Composite", "a"}}), &toolchain}});
  const Var p = Param("p", {2});
  const Expr inner_relu = MakeCall("nn.relu", {p});
  const Function composite =
      MakeFunction({p}, MakeTuple({inner_relu, MakeCall("abs", {inner_relu})}), nullptr, {{"Composite", "a"}});
  const Var y = Param("y", {2});
  const Expr call = MakeCall(Expr(composite), {y});
  EXPECT_TRUE(
      SameStructure(*rewritten, Typed({y}, MakeCall("add", {MakeTupleGetItem(call, 1), MakeTupleGetItem(call, 0)}))));
}

TEST(RewriteTest, PartitionsThatNeedEachOtherAreRefused) {
  // a1 → b2 and b1 → a2: each is convex, both together go round in a circle.
  const Var x = Param("x", {2}), y = Param("y", {2});
  const Expr a1 = MakeCall("abs", {x}), b1 = MakeCall("exp", {y});
  const Expr a2 = MakeCall("nn.relu", {b1}), b2 = MakeCall("tanh", {a1});
  const DataflowGraph graph(Typed({x, y}, MakeTuple({a1, b1, a2, b2})));
  const auto at = [&](const Expr& e) { return graph.IndexOf(e); };
  const AnyToolchain toolchain;
  const CandidatePartition a{"a", SubGraph(graph, {at(a1), at(a2)}), &toolchain};
  const CandidatePartition b{"b", SubGraph(graph, {at(b1), at(b2)}), &toolchain};
  for (const CandidatePartition* one : {&a, &b})
    EXPECT_TRUE(one->sub_graph.CheckValid(graph, {.allow_taps = true}).ok());
  EXPECT_FALSE(CanBeOrdered(graph, {&a.sub_graph, &b.sub_graph}));
  EXPECT_TRUE(CanBeOrdered(graph, {&a.sub_graph}));
  EXPECT_FALSE(RewritePartitions(graph, {{&a, PlainLayouts(2, 2), 0}, {&b, PlainLayouts(2, 2), 0}}).has_value());
}

/// Random functions, random selections of candidates of two toolchains: the rewritten function computes the same.
TEST(RewriteTest, KeepsTheMeaningOfRandomFunctions) {
  const AnyToolchain joiner("acme", FusionStyle::kArbitrary, 4, true);
  const AnyToolchain fuser("native", FusionStyle::kTVMFusion, 5);
  int num_partitions = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Function function = RandomFunction(4 + static_cast<int>(random() % 8), random);
    const DataflowGraph graph(function);
    RuleLog log;
    std::vector<CandidatePartition> candidates = GatherPartitionRule(joiner)->AllCandidates(graph, joiner, log);
    for (CandidatePartition& c : GatherPartitionRule(fuser)->AllCandidates(graph, fuser, log))
      candidates.push_back(std::move(c));
    std::shuffle(candidates.begin(), candidates.end(), random);
    std::vector<ChosenPartition> chosen;
    std::vector<const SubGraph*> sub_graphs;
    for (const CandidatePartition& candidate : candidates) {
      const auto overlaps = [&](const SubGraph* other) { return Overlap(graph, *other, candidate.sub_graph); };
      if (std::any_of(sub_graphs.begin(), sub_graphs.end(), overlaps)) continue;
      sub_graphs.push_back(&candidate.sub_graph);
      const Boundary boundary = BoundaryOf(graph, candidate.sub_graph);
      chosen.push_back({&candidate, PlainLayouts(boundary.inputs.size(), boundary.outputs.size()), 0});
    }
    const std::optional<Function> rewritten = RewritePartitions(graph, chosen);
    ASSERT_EQ(rewritten.has_value(), CanBeOrdered(graph, sub_graphs));
    if (!rewritten) continue;
    num_partitions += static_cast<int>(chosen.size());
    InferType(*rewritten);
    std::vector<Tensor> inputs;
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(Tensor::Empty({2, 4, 6}, kFloat32));
      for (float& value : inputs.back().span<float>()) value = static_cast<float>(random() % 2000) / 1000 - 1;
    }
    const std::vector<Tensor> expected = Evaluate(function, inputs);
    const std::vector<Tensor> actual = Evaluate(*rewritten, inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(BitEqual(actual[i], expected[i]));
  }
  EXPECT_GT(num_partitions, 500);
}

TEST(RewriteTest, DeepChainsNeedNoStack) {
  const Var x = Param("x", {2});
  Expr value = x;
  for (int i = 0; i < 100'000; ++i) value = MakeCall("nn.relu", {value});
  const Function function = Typed({x}, value);
  const DataflowGraph graph(function);
  const AnyToolchain toolchain;
  std::vector<CandidatePartition> candidates;
  for (int i = 2; i + 1 < static_cast<int>(graph.size()) - 1; i += 1000)
    candidates.push_back({"r", SubGraph(graph, {i, i + 1}), &toolchain});
  std::vector<ChosenPartition> chosen;
  for (const CandidatePartition& candidate : candidates) chosen.push_back({&candidate, PlainLayouts(1, 1), 0});
  const std::optional<Function> rewritten = RewritePartitions(graph, chosen);
  ASSERT_TRUE(rewritten.has_value());
  EXPECT_EQ(DataflowGraph(*rewritten).size(), graph.size() + 3 * chosen.size())
      << "parameter, function and call for each";
}

}  // namespace
}  // namespace collage
