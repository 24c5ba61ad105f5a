#include "collage/inspect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"

namespace collage {
namespace {

using Sets = std::vector<std::vector<int>>;

Function Parse(const std::string& body, const std::string& params = "%x: Tensor[(2, 3), float32]") {
  return ParseModule("def @main(" + params + ") {\n" + body + "\n}\n").main();
}

const char* kThreeRelus = "nn.relu(nn.relu(nn.relu(%x)))";  // x 0, operator 1, calls 2 3 4, function 5
const std::string kFourTensors =
    "%a: Tensor[(2), float32], %b: Tensor[(2), float32], %c: Tensor[(2), float32], %d: Tensor[(2), float32]";

TEST(InspectDataflowTest, NumbersEdgesBlocksDominators) {
  const auto nodes = InspectDataflow(Parse("%0 = exp(%x); %1 = add(%0, %0); (%1, %0)"));
  std::vector<std::string> labels;
  for (const DataflowNodeReport& node : nodes) labels.push_back(node.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"%x", "`add", "`exp", "exp", "add", "tuple", "fn"}));
  EXPECT_EQ(nodes[4].inputs, (std::vector<int>{1, 3, 3}));
  EXPECT_EQ(nodes[3].outputs, (std::vector<int>{4, 4, 5}));
  EXPECT_EQ(nodes[3].dominator_parent, 5);
  EXPECT_EQ(nodes[6].dominator_parent, std::nullopt);
  EXPECT_TRUE(nodes[6].is_external);
}

TEST(InspectDataflowTest, ControlFlow) {
  const auto nodes = InspectDataflow(Parse(R"(
    let %y = exp(%x);
    let %r = ref(%y);
    if (%c) { abs(%y) } else { ref_read(%r) })",
                                           "%c: bool, %x: Tensor[(2), float32]"));
  std::vector<std::string> labels;
  for (const DataflowNodeReport& node : nodes) labels.push_back(node.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"%c", "%x", "`exp", "exp", "%y", "ref", "%r", "`abs", "abs", "ref", "if",
                                              "let", "let", "fn"}));
  EXPECT_EQ(nodes[8].basic_block, 10);
  EXPECT_EQ(nodes[9].basic_block, 10);
  EXPECT_EQ(nodes[10].inputs, (std::vector<int>{0, 8, 9}));
  EXPECT_EQ(nodes[4].inputs, std::vector<int>{3});
}

TEST(InspectSubGraphTest, SharedConstantsAreExits) {
  const Function function = ParseModule(R"(
def @main(%x: Tensor[(2), float32]) {
  add(multiply(%x, meta[relay.Constant][0]), meta[relay.Constant][0])
})",
                                        "text", {.constants = {MakeConstant(Tensor::Empty({2}, kFloat32))}})
                                .main();
  // x 0, `add 1, `multiply 2, const 3, multiply 4, add 5
  const SubGraphReport report = InspectSubGraph(function, {3, 4}, {R"({"max_exits": 1})"});
  EXPECT_EQ(report.entry, std::vector<int>{4});
  EXPECT_EQ(report.exit, (std::vector<int>{3, 4}));
  EXPECT_EQ(report.output, std::vector<int>{5});
  EXPECT_EQ(report.label, "const+multiply");
  EXPECT_EQ(report.kind, 'B');
  EXPECT_FALSE(report.is_valid);
  EXPECT_NE(report.why_invalid.find("2 exits"), std::string::npos);
}

TEST(InspectSubGraphTest, TapsAndPathsOutside) {
  const Function function = Parse("%0 = exp(%x); %1 = abs(%0); %2 = add(%0, %1); add(%2, %0)");
  // x 0, `add 1, `exp 2, exp 3, `abs 4, abs 5, add 6, add 7
  EXPECT_NE(InspectSubGraph(function, {3, 6}, {"{}"}).why_invalid.find("tap"), std::string::npos);
  EXPECT_NE(InspectSubGraph(function, {3, 6}, {R"({"allow_taps": true})"}).why_invalid.find("comes back at node 6"),
            std::string::npos);
  EXPECT_TRUE(InspectSubGraph(function, {3, 5, 6}, {R"({"allow_taps": true})"}).is_valid);
  EXPECT_TRUE(InspectSubGraph(function, {3, 5, 6, 7}, {R"({"max_exits": 1, "max_depth": 4})"}).is_valid);
  EXPECT_FALSE(InspectSubGraph(function, {3, 5, 6, 7}, {R"({"max_depth": 3})"}).is_valid);
  EXPECT_THROW(InspectSubGraph(function, {99}, {"{}"}), Error);
  EXPECT_THROW(InspectSubGraph(function, {}, {"{}"}), Error);
}

TEST(InspectSubGraphTest, BranchesDoNotMix) {
  const Function function = Parse("if (%c) { exp(abs(%x)) } else { abs(%x) }", "%c: bool, %x: Tensor[(2), float32]");
  const auto nodes = InspectDataflow(function);
  std::vector<int> calls;
  for (const DataflowNodeReport& node : nodes) {
    if (node.label == "abs" || node.label == "exp" || node.label == "if") calls.push_back(node.index);
  }
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_TRUE(InspectSubGraph(function, {calls[0], calls[1]}, {"{}"}).is_valid);
  EXPECT_NE(InspectSubGraph(function, {calls[2], calls[3]}, {"{}"}).why_invalid.find("branches"), std::string::npos);
}

Sets Inside(const std::vector<CandidateReport>& candidates) {
  Sets sets;
  for (const CandidateReport& candidate : candidates) sets.push_back(candidate.inside);
  return sets;
}

std::string MatchRule(const std::string& pattern) { return R"({"rule": "DFPattern", "pattern": ")" + pattern + "\"}"; }
std::string CompositeOf(const std::string& name, const std::string& pattern) {
  return R"({"rule": "Composite", "name": ")" + name + R"(", "sub_rule": )" + MatchRule(pattern) + "}";
}
std::string PrimitiveOf(const std::string& rule) { return R"({"rule": "Primitive", "sub_rule": )" + rule + "}"; }
std::string UnionOf(const std::string& a, const std::string& b) {
  return R"({"rule": "Union", "sub_rules": [)" + a + ", " + b + "]}";
}

TEST(InspectCandidatesTest, EachSetOnceForEachWayToWrapItWithNameLabelKindDepth) {
  const std::string pairs = R"({"rule": "Combine", "combiner_rules": [{"combiner": "AllSimple", "kinds": ["A->B"]}],)"
                            R"("max_depth": 2, "sub_rule": {"rule": "OpCallByKind"}})";
  const JsonText rule{UnionOf(CompositeOf("acme.relu", "nn.relu(*)"), pairs)};
  const auto candidates = InspectCandidates(Parse(kThreeRelus), rule);
  EXPECT_EQ(Inside(candidates), (Sets{{2}, {2}, {2, 3}, {3}, {3}, {3, 4}, {4}, {4}}));
  EXPECT_EQ(candidates[0].rule_name, "acme.relu.nn.relu");
  EXPECT_EQ(candidates[1].rule_name, "nn.relu");
  EXPECT_EQ(candidates[2].rule_name, "nn.relu+nn.relu");
  EXPECT_EQ(candidates[2].label, "nn.relu+nn.relu");
  EXPECT_EQ(candidates[2].kind, 'E');
  EXPECT_EQ(candidates[2].depth, 2);
}

TEST(InspectCandidatesTest, MistakesInRulesNameLineAndColumn) {
  const auto message = [](const std::string& rule) -> std::string {
    try {
      InspectCandidates(Parse(kThreeRelus), {rule, "r.json"});
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kInput);
      return error.where() + ": " + error.message();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(message("{\"rule\":\n  \"Unoin\"}"), "r.json:2:3: there is no rule 'Unoin'");
  EXPECT_EQ(message(R"({"rule": "Union"})"), "r.json:1:1: 'sub_rules' is missing");
  EXPECT_EQ(message(R"({"rule": "Host", "depth": 1})"), "r.json:1:27: unknown field 'depth'");
  EXPECT_TRUE(message(R"({"rule": )").starts_with("r.json:1:10: not JSON"));
  EXPECT_TRUE(message(MatchRule("nn.rellu(*)")).starts_with("r.json:1:34: there is no operator 'nn.rellu'"));
  EXPECT_EQ(message(R"({"rule": "OnlyValid", "config": {"max_exits": -1}, "sub_rule": {"rule": "Host"}})"),
            "r.json:1:47: expected an integer from 0 to 2147483647, got -1");
  EXPECT_EQ(message(R"({"rule": "Combine", "combiner_rules": [{"combiner": "AllSimple", "kinds": ["A-B"]}],)"
                    R"("sub_rule": {"rule": "Host"}})"),
            "r.json:1:76: malformed kinds 'A-B'");
}

TEST(InspectRewriteTest, AllCandidatesInParallel) {
  const Function function = Parse("%0 = add(%a, %b); %1 = add(%c, %d); subtract(%0, %1)", kFourTensors);
  const Function rewritten = RewriteByRule(function, {PrimitiveOf(MatchRule("add(*, *)"))}, {"acme", true});
  const Function expected = Parse(R"(
    %0 = fn (%p: Tensor[(2), float32], %q: Tensor[(2), float32], Primitive=1, Compiler="acme") { add(%p, %q) };
    %1 = fn (%p: Tensor[(2), float32], %q: Tensor[(2), float32], Primitive=1, Compiler="acme") { add(%p, %q) };
    %2 = %0(%a, %b); %3 = %1(%c, %d); subtract(%2, %3))",
                                  kFourTensors);
  EXPECT_TRUE(StructuralEqual(rewritten, expected)) << PrintExpr(rewritten);
}

TEST(InspectRewriteTest, CompositesWithinThePrimitive) {
  const JsonText rule{PrimitiveOf(CompositeOf("acme.two", "abs(exp(*))"))};
  const Function rewritten = RewriteByRule(Parse("nn.relu(abs(exp(%x)))"), rule, {"acme", true});
  const Function expected = Parse(R"(
    %2 = fn (%p: Tensor[(2, 3), float32], Primitive=1, Compiler="acme") {
      %1 = fn (%q: Tensor[(2, 3), float32], Composite="acme.two") { %0 = exp(%q); abs(%0) };
      %1(%p)
    };
    nn.relu(%2(%x)))");
  EXPECT_TRUE(StructuralEqual(rewritten, expected)) << PrintExpr(rewritten);
}

TEST(InspectRewriteTest, TuplesCrossAsTheyAre) {
  const std::string pair = "%p: (Tensor[(2), float32], Tensor[(2), float32])";
  const JsonText rule{CompositeOf("c", "concatenate(*)")};
  const Function rewritten = RewriteByRule(Parse("concatenate(%p, axis=0)", pair), rule, {"acme", false});
  const Function expected = Parse("%0 = fn (" + pair + ", Composite=\"c\") { concatenate(%p, axis=0) }; %0(%p)", pair);
  EXPECT_TRUE(StructuralEqual(rewritten, expected)) << PrintExpr(rewritten);
}

TEST(InspectRewriteTest, LetsAroundPartitionsStayAndParametersStayOut) {
  const Function function = Parse("let %y = exp(%x); let %z = abs(%y); nn.relu(%z)");
  const Function expected = Parse(R"(
    let %y = exp(%x);
    %0 = fn (%p: Tensor[(2, 3), float32], Composite="c") { abs(%p) };
    let %z = %0(%y);
    nn.relu(%z))");
  const Function rewritten = RewriteByRule(function, {CompositeOf("c", "abs(*)")}, {"acme", false});
  EXPECT_TRUE(StructuralEqual(rewritten, expected)) << PrintExpr(rewritten);
  const std::string host = R"({"rule": "Composite", "name": "c", "sub_rule": {"rule": "Host"}})";
  EXPECT_THROW(RewriteByRule(function, {host}, {"acme", false}), Error);
}

TEST(InspectRewriteTest, OverlappingCandidatesAreRefused) {
  try {
    RewriteByRule(Parse(kThreeRelus), {CompositeOf("c", "nn.relu(nn.relu(*))")}, {"acme", false});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("overlap in {3}"), std::string::npos) << error.message();
  }
}

/// Native as FuseOps to `tvm_depth`, external with patterns of relu, add, concatenate to `byoc_depth`.
JsonText Targets(int tvm_depth, int byoc_depth) {
  const auto valid = [](int depth, const std::string& kinds, const std::string& rule) {
    return fmt::format(
        R"({{"rule": "OnlyValid", "config": {{"max_exits": 1, "max_depth": {0}}}, "sub_rule": )"
        R"({{"rule": "Combine", "max_depth": {0}, "combiner_rules": [{{"combiner": "AllSimple", "kinds": [{1}]}}], )"
        R"("sub_rule": {2}}}}})",
        depth, kinds, rule);
  };
  const auto composite = [](const std::string& name, const std::string& pattern) {
    return fmt::format(R"({{"rule": "Composite", "name": "{}", "sub_rule": {{"rule": "DFPattern", "pattern": "{}"}}}})",
                       name, pattern);
  };
  const std::string patterns = R"({"rule": "Union", "sub_rules": [)" + composite("relu", "nn.relu(*)") + "," +
                               composite("add", "add(*, *)") + "," + composite("concat", "concatenate(*)") + "]}";
  return {fmt::format(R"([{{"name": "llvm", "rule": {}}}, )"
                      R"({{"name": "ext", "external": true, "rule": {{"rule": "Primitive", "sub_rule": {}}}}}])",
                      valid(tvm_depth, R"("A->B", "B->R", "I->I")", R"({"rule": "OpCallByKind"})"),
                      valid(byoc_depth, R"("A->A")", patterns))};
}

JsonText Costs(double llvm, double ext, const std::string& more = "") {
  return {fmt::format(R"({{"op_cost": {{"llvm": {}, "ext": {}}}, "fusion_benefit": 0.9{}}})", llvm, ext, more)};
}

/// "llvm{2} ext{3,4}".
std::string Chosen(const CoverReport& cover) {
  std::string text;
  for (const PartitionReport& partition : cover.partitions) {
    text += (text.empty() ? "" : " ") + partition.target + "{";
    for (size_t i = 0; i < partition.inside.size(); ++i) {
      text += (i > 0 ? "," : "") + std::to_string(partition.inside[i]);
    }
    text += "}";
  }
  return text;
}

TEST(InspectPartitionTest, DepthsDecideWhoFusesThreeRelus) {
  const Function function = Parse(kThreeRelus);
  const auto run = [&](int tvm_depth, int byoc_depth, double llvm, double ext) {
    const CoverReport cover = PartitionByGivenCosts(function, Targets(tvm_depth, byoc_depth), Costs(llvm, ext));
    return fmt::format("{} = {:g}", Chosen(cover), cover.cost);
  };
  EXPECT_EQ(run(1, 1, 100, 99), "ext{2} ext{3} ext{4} = 297");
  EXPECT_EQ(run(2, 1, 100, 99), "llvm{2,3} ext{4} = 289");
  EXPECT_EQ(run(3, 1, 100, 99), "llvm{2,3,4} = 271");
  EXPECT_EQ(run(1, 1, 99, 100), "llvm{2} llvm{3} llvm{4} = 297");
  EXPECT_EQ(run(1, 2, 99, 100), "llvm{2} ext{3,4} = 289");
  EXPECT_EQ(run(1, 3, 99, 100), "ext{2,3,4} = 271");
}

TEST(InspectPartitionTest, FusionBenefitWorthALessFittingToolchain) {
  const Function function = Parse(R"(
    %0 = nn.relu(%x); %1 = nn.relu(%0); %2 = abs(%x); %3 = nn.relu(%2); %4 = add(%1, %3); %5 = nn.relu(%4); abs(%5))");
  const CoverReport cover = PartitionByGivenCosts(function, Targets(1, 5), Costs(5, 6, R"(, "unsupported": {})"));
  EXPECT_NEAR(cover.cost, 34.5706, 1e-9);
  ASSERT_EQ(cover.partitions.size(), 3u);
  EXPECT_EQ(cover.partitions[0].ops.size(), 5u);
  EXPECT_EQ(cover.partitions[0].target, "ext");
}

TEST(InspectPartitionTest, OverridesPenaltiesNextBestAndHost) {
  const Function function = Parse(kThreeRelus);
  const CoverReport plain = PartitionByGivenCosts(function, Targets(1, 1), Costs(2, 1));
  EXPECT_EQ(plain.cost, 3);
  EXPECT_EQ(plain.next_best_cost, 4);
  EXPECT_EQ(plain.host, (std::vector<int>{0, 1, 5}));
  EXPECT_GT(plain.num_states, 0);
  EXPECT_TRUE(plain.is_exact);
  EXPECT_EQ(plain.num_dropped, 0);
  EXPECT_EQ(plain.least_cost, plain.cost);
  const CoverReport more = PartitionByGivenCosts(
      function, Targets(1, 3),
      Costs(2, 1, R"(, "transition_penalty": 10, "overrides": [{"target": "ext", "inside": [2, 3, 4], "cost": 7.5}])"));
  EXPECT_EQ(Chosen(more), "ext{2,3,4}");
  EXPECT_EQ(more.cost, 17.5);
  EXPECT_EQ(more.partitions[0].cost, 7.5);
}

TEST(InspectPartitionTest, CoalescingMergesNeighboursOfOneTarget) {
  const Function function = Parse("%0 = nn.relu(%x); %1 = nn.relu(%0); %2 = abs(%1); (%0, %1, %2)");
  const CoverReport cover = PartitionByGivenCosts(function, Targets(1, 1),
                                                  Costs(2, 1, R"(, "unsupported": {"ext": ["abs"]}, "coalesce": true)"),
                                                  /*rewrite=*/true);
  ASSERT_EQ(cover.partitions.size(), 2u);
  EXPECT_EQ(cover.partitions[0].inside.size(), 2u);
  EXPECT_EQ(cover.partitions[0].cost, 2);
  const std::string tensor = "Tensor[(2, 3), float32]";
  const Function expected = Parse(R"(
    %4 = fn (%p: Tensor[(2, 3), float32], Primitive=1, Compiler="ext", global_symbol="collage_ext_nn_relu_nn_relu") {
      %0 = fn (%q: Tensor[(2, 3), float32], Composite="relu") { nn.relu(%q) };
      %1 = %0(%p);
      %2 = fn (%q: Tensor[(2, 3), float32], Composite="relu") { nn.relu(%q) };
      %3 = %2(%1);
      (%1, %3)
    };
    %5 = %4(%x); %6 = %5.1; (%5.0, %6, abs(%6)))");
  EXPECT_TRUE(StructuralEqual(cover.rewritten, expected)) << PrintExpr(cover.rewritten);
}

TEST(InspectPartitionTest, AnEstimateTakesTheFormulasPlace) {
  const Function function = Parse(kThreeRelus);
  std::map<std::string, int> asked;
  const auto estimate = [&](const Function& candidate, const std::string& target) {
    ++asked[target];
    EXPECT_NE(InferType(candidate), nullptr);
    return target == "ext" ? 1.5 : 10.0;
  };
  const JsonText costs{R"({"overrides": [{"target": "llvm", "inside": [2], "cost": 0.5}]})"};
  const CoverReport cover = PartitionByGivenCosts(function, Targets(1, 3), costs, /*rewrite=*/false, estimate);
  EXPECT_EQ(Chosen(cover), "ext{2,3,4}");
  EXPECT_EQ(cover.cost, 1.5);
  EXPECT_EQ(cover.next_best_cost, 2.0) << "the override, then two at once";
  EXPECT_LE(asked["ext"], 6) << "each candidate once";
  EXPECT_LE(asked["llvm"], 2);
  EXPECT_THROW(PartitionByGivenCosts(function, Targets(1, 1), {"{}"}, false,
                                     [](const Function&, const std::string&) { return -1.0; }),
               Error);
}

TEST(InspectPartitionTest, NoCoverNamesNodesOperatorsAndReasons) {
  try {
    PartitionByGivenCosts(Parse("tanh(nn.relu(%x))"), Targets(1, 1),
                          Costs(1, 1, R"(, "unsupported": {"llvm": ["tanh"]})"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kUnsupported);
    EXPECT_EQ(error.message(),
              "no cover: 'tanh' (node 4), llvm: 'tanh' is unsupported, ext: its rule finds no candidate with it, host: "
              "its rule finds no candidate with it");
  }
}

TEST(InspectPartitionTest, ThroughBranchesAndClosures) {
  const Function function = Parse(R"(
    let %f = fn (%y: Tensor[(2, 3), float32]) { nn.relu(nn.relu(%y)) };
    if (%c) { %f(%x) } else { nn.relu(%x) })",
                                  "%c: bool, %x: Tensor[(2, 3), float32]");
  const CoverReport cover = PartitionByGivenCosts(function, Targets(1, 3), Costs(5, 3), /*rewrite=*/true);
  EXPECT_NEAR(cover.cost, 3 + 2.7 + 3, 1e-9);
  EXPECT_EQ(cover.partitions.size(), 2u);
  EXPECT_NE(PrintExpr(cover.rewritten).find("Compiler=\"ext\""), std::string::npos);
}

}  // namespace
}  // namespace collage
