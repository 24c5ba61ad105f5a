#include "partition/partition_rule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;
using Kind = OpPatternKind;

Sets Sorted(Sets sets) {
  std::sort(sets.begin(), sets.end());
  return sets;
}

Sets Plus(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return Sorted(std::move(sets));
}

const Sets kGptSingles{{6}, {8}, {9}, {11}, {15}, {17}, {18}, {20}, {21}, {23}, {24}};
const Sets kGptAnchorToBroadcast{{6, 8},          {9, 11},      {9, 15},      {9, 11, 15},  {9, 15, 17},
                                 {9, 11, 15, 17}, {11, 24},     {15, 17},     {17, 18},     {18, 20},
                                 {20, 21},        {21, 23},     {23, 24},     {15, 17, 18}, {17, 18, 20},
                                 {18, 20, 21},    {20, 21, 23}, {21, 23, 24}, {11, 23, 24}, {11, 21, 23, 24}};
const Sets kGptMixed{{5, 6},    {7, 8},         {8, 9},           {8, 9, 11},    {8, 9, 15},
                     {5, 6, 8}, {5, 6, 7, 8},   {7, 8, 9},        {7, 8, 9, 11}, {7, 8, 9, 15},
                     {6, 7, 8}, {8, 9, 11, 15}, {7, 8, 9, 11, 15}};
const Sets kTupleSingles{{6}, {8}, {9}, {10}, {12}, {13}, {14}, {16}};

TEST(PartitionRuleTest, PatternsFindEveryMatchNotJustTheFirst) {
  const DataflowGraph graph(Std());
  EXPECT_EQ(Find(graph, *DFPatternRule("relu", ParsePattern("nn.relu(*)"), {})), (Sets{{4}, {5}}));
  EXPECT_EQ(Find(graph, *DFPatternRule("two", ParsePattern("nn.relu((nn.relu(*) | abs(*)))"), {})),
            (Sets{{3, 4}, {4, 5}}));
}

TEST(PartitionRuleTest, AValueUsedElsewhereMakesAMatchInvalid) {
  const Var x = Param("x", {4});
  const Expr relu = MakeCall("nn.relu", {x});
  const DataflowGraph graph(Typed({x}, MakeCall("add", {MakeCall("abs", {relu}), relu})));
  const auto find = [&](const char* pattern, bool only_valid) {
    PartitionRulePtr all = DFPatternRule("p", ParsePattern(pattern), {});
    return Find(graph, only_valid ? *OnlyValidRule({.max_exits = 1}, std::move(all)) : *all).size();
  };
  EXPECT_EQ(find("abs(nn.relu(*))", false), 1u);
  EXPECT_EQ(find("abs(nn.relu(*))", true), 0u);
  EXPECT_EQ(find("add(abs(nn.relu(*)), nn.relu(*))", true), 1u) << "all of it comes back";
}

TEST(PartitionRuleTest, PredicatesSeeTheExtractedFunctionAndReasonsAreKept) {
  const DataflowGraph graph(GptTail());
  std::vector<std::string> refusals;
  RuleLog log;
  log.on_refused_match = [&](const Refusal& refusal) {
    refusals.push_back(refusal.rule_name + " " + refusal.sub_graph->OperatorLabel(graph) + ": " + refusal.reason.text);
  };
  const auto rule = DFPatternRule("dense_bias", ParsePattern("add(nn.dense(*, const), const)"),
                                  [](const Function& f) -> Result<void> {
                                    EXPECT_EQ(f->params().size(), 1u) << "weights must be inlined";
                                    EXPECT_NE(f->checked_type(), nullptr);
                                    return Reason{"too small", "test"};
                                  });
  EXPECT_TRUE(rule->AllCandidates(graph, AnyToolchain(), log).empty());
  EXPECT_EQ(refusals, std::vector<std::string>{"dense_bias nn.dense+add: too small"});
}

TEST(PartitionRuleTest, MatchesThatAreNoPartitionAreRefusedWithReasons) {
  const Var x = MakeVar("x", TensorType(Shape{4}, kFloat32));
  const Expr relu = MakeCall("nn.relu", {x});
  const Function function = MakeFunction({x}, MakeCall("add", {MakeCall("abs", {relu}), MakeCall("exp", {relu})}));
  InferType(function);
  const DataflowGraph graph(function);
  std::vector<std::string> refusals;
  RuleLog log;
  log.on_refused_match = [&](const Refusal& refusal) {
    refusals.push_back(refusal.sub_graph->OperatorLabel(graph) + ": " + refusal.reason.text);
  };
  const DFPatternPtr pattern = ParsePattern("abs(nn.relu(*))");
  const auto yes = [](const Function&) { return Result<void>(); };
  EXPECT_TRUE(DFPatternRule("a", pattern, yes)->AllCandidates(graph, AnyToolchain(), log).empty());
  EXPECT_TRUE(OnlyValidRule({.max_exits = 1}, DFPatternRule("a", pattern, {}))
                  ->AllCandidates(graph, AnyToolchain(), log)
                  .empty());
  const std::string expected = "nn.relu+abs: 2 exits, at most 1 are allowed";
  EXPECT_EQ(refusals, (std::vector<std::string>{expected, expected}));
}

TEST(PartitionRuleTest, UnionAndKinds) {
  const DataflowGraph graph(Std());
  std::vector<PartitionRulePtr> both;
  both.push_back(DFPatternRule("abs", ParsePattern("abs(*)"), {}));
  both.push_back(DFPatternRule("relu", ParsePattern("nn.relu(*)"), {}));
  EXPECT_EQ(Find(graph, *UnionRule(std::move(both))), (Sets{{3}, {4}, {5}}));
  EXPECT_EQ(Find(graph, *OpCallByKindRule()), (Sets{{3}, {4}, {5}}));
  EXPECT_EQ(Find(graph, *OpPredicateRule()), (Sets{{3}, {4}, {5}}));
}

TEST(PartitionRuleTest, OpaqueOperatorsAreNotFusable) {
  const Var x = Param("x", {8});
  const DataflowGraph graph(Typed({x}, MakeCall("cumsum", {MakeCall("abs", {x})}, {{"axis", 0}})));
  ASSERT_EQ(graph.KindAt(4), Kind::kOpaque) << "cumsum";
  EXPECT_EQ(Find(graph, *OpCallByKindRule()), (Sets{{3}}));
}

TEST(PartitionRuleTest, CompositeAndPrimitiveWrap) {
  const DataflowGraph graph(Std());
  RuleLog log;
  const auto rule = PrimitiveRule(CompositeRule("relu", DFPatternRule("p", ParsePattern("nn.relu(*)"), {})));
  for (const bool native : {false, true}) {
    const AnyToolchain toolchain(native ? "native" : "acme");
    const auto candidates = rule->AllCandidates(graph, toolchain, log);
    ASSERT_EQ(candidates.size(), 2u);
    const std::vector<NestedSubGraph>& nested = candidates[0].sub_graph.nested;
    ASSERT_EQ(nested.size(), 1u);
    EXPECT_EQ(nested[0].attrs.Int("Primitive"), 1);
    EXPECT_EQ(nested[0].attrs.StringOr("Compiler", ""), native ? "" : "acme");
    ASSERT_EQ(nested[0].nested.size(), 1u);
    EXPECT_EQ(nested[0].nested[0].attrs.String("Composite"), "relu");
  }
}

TEST(PartitionRuleTest, HostTakesWhatNeedsNoToolchain) {
  EXPECT_EQ(Find(DataflowGraph(Tuples()), *HostRule()), Sorted({{0}, {1}, {2}, {3}, {4}, {5}, {7}, {11}, {15}, {17}}));
}

TEST(CombineRuleTest, AnchorsWithBroadcasts) {
  const DataflowGraph graph(GptTail());
  CombineOptions options{.kinds = {{Kind::kOutEWiseFusable, Kind::kBroadcast}}, .limits = {.max_depth = 3}};
  EXPECT_EQ(Find(graph, *CombineRule(options, OpCallByKindRule())), Plus(kGptSingles, kGptAnchorToBroadcast));
  const auto valid = OnlyValidRule({.max_exits = 1, .max_depth = 2}, CombineRule(options, OpCallByKindRule()));
  EXPECT_EQ(
      Find(graph, *valid),
      Plus(kGptSingles, {{6, 8}, {11, 24}, {15, 17}, {17, 18}, {18, 20}, {20, 21}, {21, 23}, {23, 24}, {11, 23, 24}}));
}

TEST(CombineRuleTest, ConstantsAllAtOnce) {
  CombineOptions options{.constants = true};
  EXPECT_EQ(Find(DataflowGraph(GptTail()), *CombineRule(options, OpCallByKindRule())),
            Plus(kGptSingles, {{5, 6}, {7, 8}}));
}

TEST(CombineRuleTest, KindsAndConstantsMixed) {
  CombineOptions options{.kinds = {{Kind::kOutEWiseFusable, Kind::kBroadcast},
                                   {Kind::kBroadcast, Kind::kCommReduce},
                                   {Kind::kInjective, Kind::kInjective}},
                         .constants = true,
                         .limits = {.max_depth = 3}};
  const Sets expected = Plus(Plus(kGptSingles, kGptAnchorToBroadcast), kGptMixed);
  EXPECT_EQ(Find(DataflowGraph(GptTail()), *CombineRule(options, OpCallByKindRule())), expected);
}

TEST(CombineRuleTest, RulesFromTextFindTheSameWithoutLimitsOnWhatIsMade) {
  const DataflowGraph graph(GptTail(), Boundaries::kExact);
  const auto find = [&](const std::string& combiners) {
    const std::string head = R"({"rule": "Combine", "max_depth": 3, "sub_rule": {"rule": "OpCallByKind"},)";
    return Find(graph, *ParseRule(head + R"("combiner_rules": [)" + combiners + "]}"));
  };
  EXPECT_EQ(find(R"({"combiner": "AllSimple", "kinds": ["A->B"]})"), Plus(kGptSingles, kGptAnchorToBroadcast));
  EXPECT_EQ(find(R"({"combiner": "AllSimple", "kinds": ["A->B", "B->R", "I->I"]}, {"combiner": "Constant"})"),
            Plus(Plus(kGptSingles, kGptAnchorToBroadcast), kGptMixed));
  const DataflowGraph tuples(Tuples(), Boundaries::kExact);
  const auto find_in_tuples = [&](const std::string& combiner) {
    const std::string head = R"({"rule": "Combine", "sub_rule": {"rule": "OpCallByKind"}, "combiner_rules": [)";
    return Find(tuples, *ParseRule(head + R"({"combiner": ")" + combiner + "\"}]}"));
  };
  EXPECT_EQ(find_in_tuples("TupleArg"), Plus(kTupleSingles, {{10, 14, 15, 16}}));
  EXPECT_EQ(find_in_tuples("TupleProj"), Plus(kTupleSingles, {{6, 7}, {6, 11}, {6, 7, 11}}));
}

TEST(CombineRuleTest, TupleArgumentsNeedAllFields) {
  CombineOptions options{.tuple_args = true};
  EXPECT_EQ(Find(DataflowGraph(Tuples()), *CombineRule(options, OpCallByKindRule())),
            Plus(kTupleSingles, {{10, 14, 15, 16}}));
}

TEST(CombineRuleTest, OneMakerOfTwoFields) {
  const Var x = Param("x", {4});
  const Expr a = MakeCall("nn.relu", {x});
  const DataflowGraph graph(Typed({x}, MakeCall("concatenate", {MakeTuple({a, a})}, {{"axis", 0}})));
  const int relu = graph.IndexOf(a);
  CombineOptions options{.tuple_args = true};
  EXPECT_EQ(Find(graph, *CombineRule(options, OpCallByKindRule())),
            Sorted({{relu}, {relu + 2}, {relu, relu + 1, relu + 2}}));
}

TEST(CombineRuleTest, Projections) {
  CombineOptions options{.tuple_projections = true};
  EXPECT_EQ(Find(DataflowGraph(Tuples()), *CombineRule(options, OpCallByKindRule())),
            Plus(kTupleSingles, {{6, 7}, {6, 11}, {6, 7, 11}}));
}

TEST(CombineRuleTest, TheCapIsReported) {
  const DataflowGraph graph(GptTail());
  CombineOptions options{.limits = {.max_depth = 3}, .max_candidates = 13};
  options.join_anything = true;
  RuleLog log;
  const AnyToolchain toolchain;
  EXPECT_EQ(CombineRule(options, OpCallByKindRule())->AllCandidates(graph, toolchain, log).size(), 13u);
  EXPECT_TRUE(log.candidates_capped);
  RuleLog quiet;
  options.max_candidates = 10'000;
  CombineRule(options, OpCallByKindRule())->AllCandidates(graph, toolchain, quiet);
  EXPECT_FALSE(quiet.candidates_capped);
}

/// All sets of calls of `graph` that are valid under `limits`: what joining anything must find where there are no
/// tuples.
Sets AllValid(const DataflowGraph& graph, const SubGraphConfig& limits) {
  std::vector<int> calls;
  for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
    if (graph.OpAt(i) != nullptr) calls.push_back(i);
  }
  Sets sets;
  for (size_t mask = 1; mask < size_t{1} << calls.size(); ++mask) {
    std::vector<int> inside;
    for (size_t i = 0; i < calls.size(); ++i) {
      if ((mask >> i & 1) != 0) inside.push_back(calls[i]);
    }
    if (SubGraph(graph, inside).CheckValid(graph, limits).ok()) sets.push_back(inside);
  }
  return Sorted(std::move(sets));
}

/// Closure by trying all pairs until nothing new comes.
Sets SlowClosure(const DataflowGraph& graph, const std::vector<CombinerKinds>& kinds, const SubGraphConfig& limits) {
  std::set<std::vector<int>> found;
  for (int i = 0; i < static_cast<int>(graph.size()); ++i) {
    if (graph.OpAt(i) != nullptr && graph.KindAt(i) <= Kind::kOutEWiseFusable) found.insert({i});
  }
  for (bool news = true; news;) {
    news = false;
    const std::set<std::vector<int>> before = found;
    for (const std::vector<int>& a : before) {
      for (const std::vector<int>& b : before) {
        const SubGraph up(graph, a);
        const SubGraph down(graph, b);
        const bool touches = std::any_of(a.begin(), a.end(), [&](int i) {
          const auto& input = down.input();
          return std::find(input.begin(), input.end(), i) != input.end();
        });
        const bool fits = std::any_of(kinds.begin(), kinds.end(), [&](const CombinerKinds& k) {
          return up.kind() <= k.up && down.kind() <= k.down;
        });
        if (!touches || !fits || !up.inside().AreDisjoint(down.inside())) continue;
        std::vector<int> both = a;
        both.insert(both.end(), b.begin(), b.end());
        const SubGraph joined(graph, both);
        if (!joined.CheckValid(graph, limits).ok()) continue;
        news = found.insert(joined.members()).second || news;
      }
    }
  }
  return {found.begin(), found.end()};
}

Function RandomSimple(int count, std::mt19937& random) {
  const Var x = Param("x", {4, 6});
  std::vector<Expr> values{x};
  const auto recent = [&] { return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 4)]; };
  for (int i = 0; i < count; ++i) {
    const Expr last = values.back();
    switch (random() % 5) {
      case 0: values.push_back(MakeCall("nn.relu", {last})); break;
      case 1: values.push_back(MakeCall("nn.dense", {last, Weights({6, 6})})); break;
      case 2:
        values.push_back(MakeCall("transpose", {MakeCall("transpose", {last}, {{"axes", std::vector<int64_t>{1, 0}}})},
                                  {{"axes", std::vector<int64_t>{1, 0}}}));
        break;
      case 3:
        values.push_back(MakeCall(
            "add", {last, MakeCall("sum", {recent()}, {{"axis", std::vector<int64_t>{1}}, {"keepdims", true}})}));
        break;
      default: values.push_back(MakeCall("add", {last, recent()}));
    }
  }
  return Typed({x}, values.back());
}

TEST(CombineRuleTest, JoiningAnythingFindsAllValidSets) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomSimple(3 + static_cast<int>(random() % 5), random));
    const SubGraphConfig limits{.max_exits = 1, .max_depth = 2 + static_cast<int>(random() % 3)};
    CombineOptions options{.limits = limits};
    options.join_anything = true;
    EXPECT_EQ(Find(graph, *CombineRule(options, OpPredicateRule())), AllValid(graph, limits));
  }
}

TEST(CombineRuleTest, KindsGiveTheClosure) {
  const std::vector<CombinerKinds> kinds{{Kind::kOutEWiseFusable, Kind::kBroadcast},
                                         {Kind::kBroadcast, Kind::kCommReduce},
                                         {Kind::kInjective, Kind::kInjective}};
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomSimple(3 + static_cast<int>(random() % 4), random));
    for (const SubGraphConfig& limits :
         {SubGraphConfig{.max_depth = 3, .allow_taps = true}, SubGraphConfig{.max_exits = 1, .max_depth = 4}}) {
      CombineOptions options{.kinds = kinds, .limits = limits};
      EXPECT_EQ(Find(graph, *CombineRule(options, OpCallByKindRule())), SlowClosure(graph, kinds, limits));
    }
  }
}

TEST(CombineRuleTest, JoiningTakesProjectionsAndTuplesBetween) {
  const DataflowGraph graph(Tuples());
  CombineOptions options{.limits = {.max_exits = 1}};
  options.join_anything = options.through_tuples = true;
  const Sets found = Find(graph, *CombineRule(options, OpPredicateRule()));
  const auto has = [&](std::vector<int> set) { return std::binary_search(found.begin(), found.end(), set); };
  EXPECT_TRUE(has({10, 15, 16})) << "one field made inside, the other outside";
  EXPECT_TRUE(has({6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})) << "all of it";
  for (const std::vector<int>& set : found) {
    EXPECT_TRUE(SubGraph(graph, set).CheckValid(graph, {.max_exits = 1}).ok())
        << IndexSet(graph.size(), set).ToString();
  }
}

TEST(MaximalRuleTest, RegionsGoAroundWhatIsNotSupported) {
  // relu; then exp (not supported) and abs side by side, put together again: abs goes with relu, add comes later.
  const Var x = Param("x", {4});
  const Expr relu = MakeCall("nn.relu", {x});
  const Expr exp = MakeCall("exp", {relu});
  const Expr abs = MakeCall("abs", {relu});
  const Expr add = MakeCall("add", {exp, abs});
  const DataflowGraph graph(Typed({x}, add));
  const auto index = [&](const Expr& expr) { return graph.IndexOf(expr); };
  class NoExp : public AnyToolchain {
   public:
    Result<void> SupportsCall(const CallNode& call) const override {
      return call.op()->name == "exp" ? Result<void>(Reason{"no exp", "test"}) : Result<void>();
    }
  };
  const NoExp toolchain;
  RuleLog log;
  const Sets found = Members(MaximalRule(OpPredicateRule())->AllCandidates(graph, toolchain, log));
  std::vector<int> region{index(relu), index(abs)};
  std::sort(region.begin(), region.end());
  EXPECT_EQ(found, Sorted({{index(relu)}, {index(abs)}, {index(add)}, region}));
}

TEST(MaximalRuleTest, RegionsAreValidAndCoverWhatIsSupported) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomFunction(8, random));
    class SomeOps : public AnyToolchain {
     public:
      explicit SomeOps(uint32_t seed) : seed_(seed) {}
      Result<void> SupportsCall(const CallNode& call) const override {
        const bool yes = (std::hash<std::string>()(call.op()->name) ^ seed_) % 3 != 0;
        return yes ? Result<void>() : Result<void>(Reason{"no", "test"});
      }

     private:
      uint32_t seed_;
    };
    const SomeOps toolchain(seed);
    RuleLog log;
    IndexSet covered(graph.size());
    size_t count = 0;
    for (const CandidatePartition& c : MaximalRule(OpPredicateRule())->AllCandidates(graph, toolchain, log)) {
      if (c.rule_name != "maximal") continue;
      EXPECT_TRUE(c.sub_graph.CheckValid(graph, {.allow_taps = true}).ok());
      EXPECT_TRUE(covered.AreDisjoint(c.sub_graph.inside())) << "regions overlap";
      covered = covered | c.sub_graph.inside();
      ++count;
    }
    for (int i : covered.Members()) {
      if (graph.OpAt(i) == nullptr) continue;
      EXPECT_TRUE(toolchain.SupportsCall(*As<CallNode>(graph.node(i).expr)).ok());
    }
    EXPECT_LE(count, graph.size());
  }
}

TEST(TrimFreeEndsRuleTest, ReshapesAtTheEndsAreLeftToTheHost) {
  // reshape; relu; reshape; exp; reshape.
  const Var x = Param("x", {4, 6});
  const auto shaped = [](const Expr& e, std::vector<int64_t> shape) {
    return MakeCall("reshape", {e}, {{"newshape", shape}});
  };
  const Expr relu = MakeCall("nn.relu", {shaped(x, {24})});
  const Expr middle = shaped(relu, {2, 12});
  const Expr exp = MakeCall("exp", {middle});
  const DataflowGraph graph(Typed({x}, shaped(exp, {24})));
  CombineOptions options{.limits = {.max_exits = 1}};
  options.join_anything = true;
  const int r = graph.IndexOf(relu);
  const int m = graph.IndexOf(middle);
  const int e = graph.IndexOf(exp);
  EXPECT_EQ(Find(graph, *TrimFreeEndsRule(CombineRule(options, OpPredicateRule()))), Sorted({{r}, {e}, {r, m, e}}));
  EXPECT_EQ(Find(graph, *TrimFreeEndsRule(MaximalRule(OpPredicateRule()))), Sorted({{r}, {e}, {r, m, e}}));
}

TEST(TrimFreeEndsRuleTest, NumbersOfBytesAreLeftToTheirReaders) {
  const auto find = [](bool is_read) {
    const Var x = Param("x", {4, 6});
    const Expr scale = MakeScalar(0.5, kFloat32), zero = MakeScalar(3, kUInt8);
    const Expr relu = MakeCall("nn.relu", {x});
    const Expr bytes = MakeCall("qnn.quantize", {relu, scale, zero}, {{"out_dtype", kUInt8}});
    const Expr numbers = MakeCall("qnn.dequantize", {bytes, scale, zero}, {{"out_dtype", kFloat32}});
    const Expr exp = MakeCall("exp", {numbers});
    const DataflowGraph graph(Typed({x}, is_read ? exp : numbers));
    CombineOptions options{.limits = {.max_exits = 1}};
    options.join_anything = true;
    std::set<std::string> found;
    for (const std::vector<int>& members : Find(graph, *TrimFreeEndsRule(CombineRule(options, OpPredicateRule())))) {
      std::string names;
      for (const int index : members) {
        if (graph.OpAt(index) != nullptr) names += graph.OpAt(index)->name.substr(0, 5) + " ";
      }
      found.insert(names);
    }
    return found;
  };
  const auto with_dequantize = [&](bool is_read) {
    std::set<std::string> names = find(is_read);
    std::erase_if(names, [](const std::string& each) { return each.find("qnn.d") == std::string::npos; });
    return names;
  };
  EXPECT_EQ(with_dequantize(true),
            (std::set<std::string>{"qnn.d ", "qnn.d exp ", "qnn.q qnn.d exp ", "nn.re qnn.q qnn.d exp "}));
  EXPECT_TRUE(find(true).contains("nn.re qnn.q "));
  // A result has no reader.
  EXPECT_EQ(with_dequantize(false), (std::set<std::string>{"qnn.d ", "qnn.q qnn.d ", "nn.re qnn.q qnn.d "}));
}

TEST(AnchorRuleTest, OneBehindTheOtherAndSideBySide) {
  const Var x = Param("x", {4, 8});
  const Expr a = MakeCall("nn.dense", {x, Weights({8, 8})}), b = MakeCall("nn.dense", {x, Weights({8, 8})});
  const Expr c = MakeCall("nn.dense", {MakeCall("nn.relu", {a}), Weights({8, 8})});
  const DataflowGraph graph(Typed({x}, MakeTuple({c, b})));
  const auto dense = [] { return DFPatternRule("", ParsePattern("(nn.relu(nn.dense(*, *)) | nn.dense(*, *))"), {}); };
  const int at_a = graph.IndexOf(a), at_b = graph.IndexOf(b), at_c = graph.IndexOf(c), relu = at_c - 2;
  const Sets singles{{at_a}, {at_b}, {at_c}, {at_a, relu}};
  EXPECT_EQ(Find(graph, *VerticalAnchorsRule({}, dense())), Plus(singles, {{at_a, relu, at_c}}));
  EXPECT_EQ(Find(graph, *HorizontalAnchorsRule({}, dense())), Plus(singles, {{at_a, at_b}, {at_a, relu, at_b}}));
  EXPECT_EQ(Find(graph, *HorizontalAnchorsRule({.anchor = "nn.conv2d"}, dense())), Sorted(singles));
  EXPECT_EQ(Find(graph, *VerticalAnchorsRule({.max_anchors = 1}, dense())), Sorted(singles));
}

TEST(ProposedRuleTest, PartitionsOfTheToolchainAreCandidates) {
  // Two chains from x: relu, exp and abs, sign. The toolchain proposes both, one that it cannot run, and one that is
  // there.
  const Var x = Param("x", {4});
  const Expr relu = MakeCall("nn.relu", {x}), exp = MakeCall("exp", {relu}), log = MakeCall("log", {exp});
  const Expr abs = MakeCall("abs", {x}), sign = MakeCall("sign", {abs});
  const DataflowGraph graph(Typed({x}, MakeTuple({log, sign})));
  class Proposer : public AnyToolchain {
   public:
    explicit Proposer(std::vector<std::vector<Expr>> proposals) : proposals_(std::move(proposals)) {}
    bool proposes() const override { return true; }
    std::vector<std::vector<Expr>> Proposals(const Function&) const override { return proposals_; }

   private:
    std::vector<std::vector<Expr>> proposals_;
  };
  const Proposer toolchain({{relu, exp}, {sign, abs}, {log, relu}, {abs}, {relu, exp}});
  std::vector<std::string> refused;
  RuleLog log_of_refusals{.on_refusal = [&](const std::string& label, const Reason&) { refused.push_back(label); }};
  const auto index = [&](const Expr& expr) { return graph.IndexOf(expr); };
  const Sets singles{{index(relu)}, {index(exp)}, {index(log)}, {index(abs)}, {index(sign)}};
  const auto found = ProposedRule(OpPredicateRule())->AllCandidates(graph, toolchain, log_of_refusals);
  EXPECT_EQ(Members(found), Plus(singles, {{index(relu), index(exp)}, {index(abs), index(sign)}}));
  EXPECT_EQ(refused, (std::vector<std::string>{"nn.relu+log"}));
  EXPECT_EQ(GatherPartitionRule(toolchain)->ToJson().dump().find("Proposed") == std::string::npos, false);
  EXPECT_EQ(GatherPartitionRule(AnyToolchain())->ToJson().dump().find("Proposed"), std::string::npos);
}

TEST(RuleJsonTest, RulesReadBackAsTheyPrint) {
  std::vector<PartitionRulePtr> all;
  all.push_back(HostRule("h"));
  all.push_back(OpPredicateRule("target.acme"));
  all.push_back(ProposedRule(FuseOpsRule(5, "f")));
  all.push_back(CompositeRule("c", DFPatternRule("", ParsePattern("nn.relu?(add(*, const))"), {})));
  all.push_back(MaxCoalesceRule({.max_exits = 2}, OpCallByKindRule()));
  all.push_back(VerticalAnchorsRule({.anchor = "nn.dense"}, OpCallByKindRule("k")));
  all.push_back(HorizontalAnchorsRule({}, TrimFreeEndsRule(MaximalRule(OpCallByKindRule()))));
  CombineOptions options{.kinds = {{Kind::kOutEWiseFusable, Kind::kBroadcast}, {Kind::kInjective, Kind::kInjective}},
                         .tuple_args = true,
                         .tuple_projections = true,
                         .constants = true,
                         .max_depth = 3,
                         .only_valid = false};
  all.push_back(
      OnlyValidRule({.max_exits = 1, .max_depth = 4, .allow_taps = true}, CombineRule(options, OpCallByKindRule())));
  const PartitionRulePtr rule = PrimitiveRule(UnionRule(std::move(all)), "all");
  const std::string text = rule->ToJson().dump(2);
  EXPECT_EQ(ParseRule(text)->ToJson().dump(2), text);
  EXPECT_EQ(GatherPartitionRule(AnyToolchain())->ToJson().dump(),
            ParseRule(GatherPartitionRule(AnyToolchain())->ToJson().dump())->ToJson().dump());
}

}  // namespace
}  // namespace collage
