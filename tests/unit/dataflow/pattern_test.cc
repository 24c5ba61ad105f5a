#include "dataflow/pattern.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "dataflow/pattern_builder.h"
#include "unit/partition/graphs.h"

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

TEST(PatternTest, ConstantsAreInsideUnlessScalars) {
  const DataflowGraph graph(testing_graphs::GptTail());
  EXPECT_EQ(Matches(graph, "nn.dense(*, const)"), (std::vector<std::vector<int>>{{5, 6}}));
  EXPECT_EQ(Matches(graph, "nn.dense(*, *)"), (std::vector<std::vector<int>>{{6}}));
  EXPECT_EQ(Matches(graph, "power(*, const)"), (std::vector<std::vector<int>>{{15}})) << "its exponent is a scalar";
  EXPECT_EQ(Matches(graph, "nn.dense(var, *)"), (std::vector<std::vector<int>>{{6}}));
  EXPECT_TRUE(Matches(graph, "add(var, *)").empty());
}

TEST(PatternTest, EnumeratesBothOperandsOfASum) {
  const Var x = testing_graphs::Param("x", {4});
  const Expr sum = MakeCall("add", {MakeCall("exp", {x}), MakeCall("exp", {MakeCall("abs", {x})})});
  const DataflowGraph graph(testing_graphs::Typed({x}, sum));
  EXPECT_EQ(Matches(graph, "add(exp(*), *)").size(), 2u) << "either operand";
  EXPECT_EQ(Matches(graph, "add(exp(*), exp(*))").size(), 1u) << "each set once";
}

TEST(PatternTest, AnyArgumentsTuplesAndProjections) {
  const DataflowGraph graph(testing_graphs::Tuples());
  EXPECT_EQ(Matches(graph, "concatenate(...)"), (std::vector<std::vector<int>>{{16}}));
  EXPECT_EQ(Matches(graph, "concatenate(tuple(*, expand_dims(*)))"), (std::vector<std::vector<int>>{{14, 15, 16}}));
  EXPECT_TRUE(Matches(graph, "concatenate(tuple(*))").empty());
  EXPECT_EQ(Matches(graph, "proj(split(*))"), (std::vector<std::vector<int>>{{6, 7}, {6, 11}}));
  EXPECT_EQ(Matches(graph, "proj(*, 2)"), (std::vector<std::vector<int>>{{11}}));
}

TEST(PatternTest, AttributesAndTypes) {
  const DataflowGraph graph(testing_graphs::Tuples());
  EXPECT_EQ(Matches(graph, "transpose{axes=[0, 2, 1, 3]}(*)").size(), 2u);
  EXPECT_TRUE(Matches(graph, "transpose{axes=[0, 2, 1]}(*)").empty());
  EXPECT_TRUE(Matches(graph, "transpose{axes=[0, 2, 1, 3, 4]}(*)").empty());
  EXPECT_EQ(Matches(graph, "split{axis=2, indices_or_sections=[4,8]}(*)").size(), 1u);
  EXPECT_TRUE(Matches(graph, "split{axis=1}(*)").empty());
  EXPECT_EQ(Matches(graph, "reshape(*:[1,3,?]float32)").size(), 2u);
  EXPECT_TRUE(Matches(graph, "reshape(*:[1,3])").empty());
  EXPECT_TRUE(Matches(graph, "reshape(*:int32)").empty());
}

TEST(PatternTest, DominatorsTakeAllBetween) {
  // exp of the sum of relu and abs of one product; then with a use that leaves.
  const Var x = testing_graphs::Param("x", {4, 4});
  const Expr dense = MakeCall("nn.dense", {x, x});
  const Expr relu = MakeCall("nn.relu", {dense});
  const Expr abs = MakeCall("abs", {dense});
  const Expr sum = MakeCall("add", {relu, abs});
  const DataflowGraph graph(testing_graphs::Typed({x}, MakeCall("exp", {sum})));
  const auto at = [&](const Expr& e) { return graph.IndexOf(e); };
  std::vector<int> all{at(dense), at(relu), at(abs), at(sum)};
  std::sort(all.begin(), all.end());
  EXPECT_EQ(Matches(graph, "dominates(nn.dense(*, *), (nn.relu(*) | abs(*)), add(*, *))"),
            (std::vector<std::vector<int>>{all}));
  EXPECT_TRUE(Matches(graph, "dominates(nn.dense(*, *), nn.relu(*), add(*, *))").empty()) << "abs is on the path";
  all.push_back(at(graph.function()->body()));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(Matches(graph, "dominates(nn.dense(*, *), *, exp(*))"), (std::vector<std::vector<int>>{all}));

  const DataflowGraph leaves(testing_graphs::Typed({x}, MakeTuple({sum, relu})));
  EXPECT_TRUE(Matches(leaves, "dominates(nn.dense(*, *), *, add(*, *))").empty());
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
  for (const char* text :
       {"", "(", "nn.relu", "nn.relu{}(*)", "nn.relu(*) x", "proj(*, a)", "dominates(*, *)", "nn.relu{a=[1}(*)",
        "*:[1,", "$", "$x=", "add($x, $x=*)", "$x=abs($x)", "proj(*, 99999999999)"}) {
    EXPECT_THROW(ParsePattern(text), Error) << text;
  }
  EXPECT_THROW(ParsePattern(std::string(100'000, '(')), Error) << "must not overflow the stack";
}

TEST(PatternTest, TextsReadBackAsTheyPrint) {
  for (const char* text : {"*",
                           "const",
                           "%x",
                           "nn.relu(...)",
                           "nn.conv2d{groups=1, strides=[2,2]}(*, const)",
                           "(nn.relu(*) | abs(var))",
                           "(add | nn.bias_add)(*, const)",
                           "proj(*)",
                           "proj(tuple(*, abs(*)), 1)",
                           "let(var, *, nn.relu(*))",
                           "if(*, abs(*), *)",
                           "fn(%x, * -> abs(*))",
                           "(fn{Composite=\"x\"}(... -> *))(*, *)",
                           "dominates(nn.dense(*, *), *, add(*, *))",
                           "nn.relu(*:[1, ?]float32)",
                           "*:float16",
                           "nn.relu?(add(*, *))",
                           "multiply($1, sigmoid($1))",
                           "multiply($1=nn.dense(*, const), sigmoid($1))",
                           "add($1=nn.relu($2=exp(*)), multiply($2, $1))"}) {
    const DFPatternPtr pattern = ParsePattern(text);
    EXPECT_EQ(PatternText(*pattern), text);
    EXPECT_EQ(PatternText(*ParsePattern(PatternText(*pattern))), text);
  }
}

TEST(PatternTest, OptionalCallsAndCalleesInBrackets) {
  const Var x = MakeVar("x", TensorType(Shape{2, 2}, kFloat32));
  const Expr sum = MakeCall("add", {MakeCall("nn.dense", {x, x}), x});
  const Expr relu = MakeCall("nn.relu", {sum});
  const DataflowGraph graph(testing_graphs::Typed({x}, MakeTuple({relu, sum})));
  const int dense = graph.IndexOf(As<CallNode>(sum)->args()[0]), add = graph.IndexOf(sum), root = graph.IndexOf(relu);
  EXPECT_EQ(Matches(graph, "nn.relu?((add | nn.bias_add)(nn.dense(*, *), var))"),
            (std::vector<std::vector<int>>{{dense, add}, {dense, add, root}}));
  EXPECT_EQ(Matches(graph, "(add | nn.bias_add)(var, nn.dense(*, *))"), (std::vector<std::vector<int>>{{dense, add}}))
      << "add commutes";
}

TEST(PatternTest, ASharedPatternIsOneNode) {
  const Var x = MakeVar("x", TensorType(Shape{2}, kFloat32));
  const Var y = MakeVar("y", TensorType(Shape{2}, kFloat32));
  const Expr swish = MakeCall("multiply", {MakeCall("sigmoid", {x}), x});
  const Expr other = MakeCall("multiply", {MakeCall("sigmoid", {x}), y});
  const DataflowGraph graph(testing_graphs::Typed({x, y}, MakeTuple({swish, other})));
  const DFPatternPtr any = Wildcard();
  const DFPatternPtr pattern = CallPattern("multiply", {any, CallPattern("sigmoid", {any})});
  int num_matches = 0;
  for (int root = 0; root < static_cast<int>(graph.size()); ++root) {
    MatchPattern(graph, *pattern, root, [&](const std::vector<int>& inside) {
      EXPECT_EQ(inside.back(), graph.IndexOf(swish));
      ++num_matches;
    });
  }
  EXPECT_EQ(num_matches, 1);
}

TEST(PatternTest, NamesInTextAreOneNode) {
  const Var x = testing_graphs::Param("x", {2}), y = testing_graphs::Param("y", {2});
  const Expr sum = MakeCall("add", {x, y});
  const Expr swish = MakeCall("multiply", {MakeCall("sigmoid", {sum}), sum});
  const DataflowGraph graph(testing_graphs::Typed({x, y}, MakeTuple({swish, MakeCall("multiply", {sum, y})})));
  const int add = graph.IndexOf(sum), root = graph.IndexOf(swish);
  EXPECT_EQ(Matches(graph, "multiply($x, sigmoid($x))"), (std::vector<std::vector<int>>{{root - 1, root}}));
  EXPECT_EQ(Matches(graph, "multiply($x=add(*, *), sigmoid($x))"),
            (std::vector<std::vector<int>>{{add, root - 1, root}}));
  EXPECT_TRUE(Matches(graph, "multiply($x, tanh($x))").empty());
  EXPECT_TRUE(Matches(graph, "multiply($x, $x)").empty());
}

TEST(PatternTest, ProductsAndQuotientsInEveryOrder) {
  const Var a = testing_graphs::Param("a", {2}), b = testing_graphs::Param("b", {2}),
            c = testing_graphs::Param("c", {2});
  const Expr abs = MakeCall("abs", {a}), exp = MakeCall("exp", {b}), tanh = MakeCall("tanh", {c});
  const auto multiply = [](const Expr& l, const Expr& r) { return MakeCall("multiply", {l, r}); };
  const auto divide = [](const Expr& l, const Expr& r) { return MakeCall("divide", {l, r}); };
  const std::vector<std::string> texts{"divide(multiply(abs(*), exp(*)), tanh(*))",
                                       "multiply(abs(*), divide(exp(*), tanh(*)))",
                                       "multiply(exp(*), divide(abs(*), tanh(*)))"};
  for (const Expr& same :
       {divide(multiply(abs, exp), tanh), multiply(divide(abs, tanh), exp), multiply(abs, divide(exp, tanh))}) {
    const DataflowGraph graph(testing_graphs::Typed({a, b, c}, same));
    for (const std::string& text : texts) {
      const auto found = Matches(graph, text);
      ASSERT_EQ(found.size(), 1u) << text;
      EXPECT_EQ(found[0].size(), 5u);
    }
  }
  for (const Expr& other : {divide(multiply(abs, tanh), exp), divide(abs, multiply(exp, tanh)),
                            multiply(multiply(abs, exp), tanh), divide(divide(abs, exp), tanh)}) {
    const DataflowGraph graph(testing_graphs::Typed({a, b, c}, other));
    for (const std::string& text : texts) EXPECT_TRUE(Matches(graph, text).empty()) << text;
  }
  // A product that is wanted elsewhere too must exist.
  const DataflowGraph graph(
      testing_graphs::Typed({a, b, c}, MakeTuple({divide(multiply(abs, exp), tanh), multiply(abs, exp)})));
  EXPECT_EQ(Matches(graph, "divide($p=multiply(abs(*), exp(*)), tanh(*))").size(), 1u);
  const DataflowGraph apart(testing_graphs::Typed({a, b, c}, MakeCall("add", {multiply(divide(abs, tanh), exp), abs})));
  EXPECT_TRUE(Matches(apart, "add(divide($p=multiply(abs(*), exp(*)), tanh(*)), $p)").empty());
}

TEST(PatternTest, FunctionsLetsAndIfs) {
  const Type tensor = TensorType(Shape{2}, kFloat32);
  const Var p = MakeVar("p", tensor), x = MakeVar("x", tensor), y = MakeVar("y", tensor);
  const Var c = MakeVar("c", TensorType(Shape{}, kBool));
  const Function inner = MakeFunction({p}, MakeCall("abs", {p}), nullptr, {{"Composite", "acme.abs"}});
  const Expr call = MakeCall(Expr(inner), {x});
  const Expr branch = std::make_shared<IfNode>(c, y, MakeCall("exp", {y}));
  const Expr let = std::make_shared<LetNode>(y, call, branch);
  const DataflowGraph graph(testing_graphs::Typed({c, x}, let));
  const auto at = [&](const Expr& expr) { return graph.IndexOf(expr); };
  EXPECT_EQ(Matches(graph, "(fn{Composite=\"acme.abs\"}(... -> *))(*)"), (std::vector<std::vector<int>>{{at(call)}}));
  EXPECT_EQ(Matches(graph, "(fn{Composite=\"acme.exp\"}(... -> *))(*)").size(), 0u);
  EXPECT_EQ(Matches(graph, "if(%c, *, exp(*))").size(), 1u);
  EXPECT_EQ(Matches(graph, "let(%y, *, if(*, *, *))"), (std::vector<std::vector<int>>{{at(branch), at(let)}}));
}

}  // namespace
}  // namespace collage
