// partition_cases_test.cc: which of a native and an external toolchain gets what, at given costs: the choice, its cost,
// and the partitioned function.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collage/inspect.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

const std::string kTensor = "Tensor[(10, 10), float32]";

Function Parse(const std::string& body) {
  return ParseModule("def @main(%x: " + kTensor + ") {\n" + body + "\n}").main();
}

std::string Composite(const std::string& name, const std::string& pattern) {
  return fmt::format(R"({{"rule": "Composite", "name": "{}", "sub_rule": {{"rule": "DFPattern", "pattern": "{}"}}}})",
                     name, pattern);
}

/// "llvm" as FuseOps to `tvm_depth`; "ext" with patterns of relu, add, concatenate, any that touch joined to
/// `byoc_depth`.
JsonText Targets(int tvm_depth, int byoc_depth) {
  const auto combined = [](int depth, const std::string& combiners, const std::string& rule) {
    return fmt::format(R"({{"rule": "OnlyValid", "config": {{"max_exits": 1, "max_depth": {0}}}, "sub_rule": )"
                       R"({{"rule": "Combine", "max_depth": {0}, "combiner_rules": [{1}], "sub_rule": {2}}}}})",
                       depth, combiners, rule);
  };
  const std::string native = combined(tvm_depth,
                                      R"({"combiner": "AllSimple", "kinds": ["A->B", "B->R", "I->I"]},)"
                                      R"({"combiner": "TupleArg"}, {"combiner": "TupleProj"})",
                                      R"({"rule": "OpCallByKind"})");
  const std::string external =
      combined(byoc_depth, R"({"combiner": "AllSimple", "kinds": ["A->A"]})",
               R"({"rule": "Union", "sub_rules": [)" + Composite("relu", "nn.relu(*)") + ", " +
                   Composite("add", "add(*, *)") + ", " + Composite("concatenate", "concatenate(*)") + "]}");
  return {fmt::format(R"([{{"name": "llvm", "rule": {}}}, {{"name": "ext", "external": true, "rule": )"
                      R"({{"rule": "Primitive", "sub_rule": {}}}}}])",
                      native, external)};
}

CoverReport Partitioned(const Function& function, int tvm_depth, int byoc_depth, double llvm, double ext) {
  const std::string costs =
      fmt::format(R"({{"op_cost": {{"llvm": {}, "ext": {}}}, "fusion_benefit": 0.9, "coalesce": true}})", llvm, ext);
  return PartitionByGivenCosts(function, Targets(tvm_depth, byoc_depth), {costs}, /*rewrite=*/true);
}

/// "llvm[abs] ext[nn.relu add]".
std::string Chosen(const CoverReport& cover) {
  std::string text;
  for (const PartitionReport& partition : cover.partitions) {
    std::string ops;
    for (const std::string& op : partition.ops) ops += (ops.empty() ? "" : " ") + op;
    text += (text.empty() ? "" : " ") + partition.target + "[" + ops + "]";
  }
  return text;
}

void ExpectEqual(const Function& found, const Function& expected) {
  EXPECT_TRUE(StructuralEqual(found, expected)) << PrintExpr(found) << "\nwanted\n" << PrintExpr(expected);
}

/// A Composite of one operator over tensors of kTensor.
std::string Wrapped(const std::string& name, const std::string& params, const std::string& call) {
  return fmt::format("fn ({}, Composite=\"{}\") {{ {} }}", params, name, call);
}
const std::string kP = "%p: " + kTensor;
const std::string kPQ = kP + ", %q: " + kTensor;

std::string Ext(const std::string& params, const std::string& symbol, const std::string& body) {
  return fmt::format("fn ({}, Primitive=1, Compiler=\"ext\", global_symbol=\"{}\") {{ {} }}", params, symbol, body);
}

TEST(PartitionCasesTest, TheCheaperNativeOperatorLeavesNoTrace) {
  const Function function = Parse("nn.relu(%x)");
  const CoverReport cover = Partitioned(function, 4, 4, 1, 2);
  EXPECT_EQ(Chosen(cover), "llvm[nn.relu]");
  EXPECT_EQ(cover.cost, 1);
  EXPECT_EQ(cover.next_best_cost, 2);
  ExpectEqual(cover.rewritten, function);
}

TEST(PartitionCasesTest, TheCheaperExternalOperatorIsAPartition) {
  const CoverReport cover = Partitioned(Parse("nn.relu(%x)"), 4, 4, 2, 1);
  EXPECT_EQ(Chosen(cover), "ext[nn.relu]");
  ExpectEqual(
      cover.rewritten,
      Parse("%2 = " + Ext(kP, "collage_ext_nn_relu", "%1 = " + Wrapped("relu", kP, "nn.relu(%p)") + "; %1(%p)") +
            "; %2(%x)"));
}

TEST(PartitionCasesTest, OnePartitionOrTwoThatCoalesce) {
  const Function function = Parse("%0 = nn.relu(%x); %1 = abs(%0); %2 = nn.relu(%1); add(%1, %2)");
  const std::string relu = Wrapped("relu", kP, "nn.relu(%p)"), add = Wrapped("add", kPQ, "add(%p, %q)");
  const Function expected = Parse(
      "%2 = " + Ext(kP, "collage_ext_nn_relu", "%1 = " + relu + "; %1(%p)") + "; %3 = %2(%x); %4 = abs(%3); %8 = " +
      Ext(kP, "collage_ext_nn_relu_add", "%5 = " + relu + "; %6 = %5(%p); %7 = " + add + "; %7(%p, %6)") + "; %8(%4)");
  const CoverReport fused = Partitioned(function, 1, 3, 2, 1);
  EXPECT_EQ(Chosen(fused), "ext[nn.relu] llvm[abs] ext[nn.relu add]");
  EXPECT_NEAR(fused.cost, 1 + 2 + 1.9, 1e-12);
  ExpectEqual(fused.rewritten, expected);
  const CoverReport single = Partitioned(function, 1, 1, 2, 1);
  EXPECT_NEAR(single.cost, 1 + 2 + 1 + 1, 1e-12);
  EXPECT_EQ(Chosen(single), "ext[nn.relu] llvm[abs] ext[nn.relu add]");
  ExpectEqual(single.rewritten, expected);
}

TEST(PartitionCasesTest, DepthOfNativeKernelsDecides) {
  const Function function = Parse("nn.relu(nn.relu(nn.relu(%x)))");
  EXPECT_EQ(Chosen(Partitioned(function, 1, 1, 100, 99)), "ext[nn.relu nn.relu nn.relu]") << "coalesced";
  const CoverReport two = Partitioned(function, 2, 1, 100, 99);
  EXPECT_NEAR(two.cost, 289, 1e-9);
  EXPECT_EQ(two.partitions.size(), 2u);
  EXPECT_EQ(Chosen(Partitioned(function, 3, 1, 100, 99)), "llvm[nn.relu nn.relu nn.relu]");
}

TEST(PartitionCasesTest, DepthOfExternalKernelsDecides) {
  const Function function = Parse("nn.relu(nn.relu(nn.relu(%x)))");
  const CoverReport native = Partitioned(function, 1, 1, 99, 100);
  EXPECT_NEAR(native.cost, 297, 1e-9);
  ExpectEqual(native.rewritten, function);
  const CoverReport mixed = Partitioned(function, 1, 2, 99, 100);
  EXPECT_NEAR(mixed.cost, 99 + 190, 1e-9);
  const CoverReport fused = Partitioned(function, 1, 3, 99, 100);
  EXPECT_EQ(Chosen(fused), "ext[nn.relu nn.relu nn.relu]");
  EXPECT_NEAR(fused.cost, 271, 1e-9);
}

TEST(PartitionCasesTest, CoalescedPartitionsHaveSeveralResults) {
  const CoverReport cover =
      Partitioned(Parse("%0 = nn.relu(%x); %1 = nn.relu(%0); %2 = abs(%1); (%0, %1, %2)"), 1, 1, 2, 1);
  EXPECT_EQ(Chosen(cover), "ext[nn.relu nn.relu] llvm[abs]");
  const std::string relu = Wrapped("relu", kP, "nn.relu(%p)");
  ExpectEqual(cover.rewritten, Parse("%4 = " +
                                     Ext(kP, "collage_ext_nn_relu_nn_relu",
                                         "%0 = " + relu + "; %1 = %0(%p); %2 = " + relu + "; %3 = %2(%1); (%1, %3)") +
                                     "; %5 = %4(%x); %6 = %5.1; (%5.0, %6, abs(%6))"));
}

TEST(PartitionCasesTest, TuplesAreBuiltByTheHost) {
  const CoverReport cover = Partitioned(Parse("%0 = nn.relu(%x); %1 = nn.relu(%0); concatenate((%0, %1))"), 1, 4, 2, 1);
  EXPECT_EQ(Chosen(cover), "ext[nn.relu nn.relu] ext[concatenate]");
  const std::string relu = Wrapped("relu", kP, "nn.relu(%p)");
  const std::string pair = "%t: (" + kTensor + ", " + kTensor + ")";
  ExpectEqual(cover.rewritten, Parse("%4 = " +
                                     Ext(kP, "collage_ext_nn_relu_nn_relu",
                                         "%0 = " + relu + "; %1 = %0(%p); %2 = " + relu + "; %3 = %2(%1); (%1, %3)") +
                                     "; %5 = %4(%x); %6 = (%5.0, %5.1); %8 = " +
                                     Ext(pair, "collage_ext_concatenate",
                                         "%7 = " + Wrapped("concatenate", pair, "concatenate(%t)") + "; %7(%t)") +
                                     "; %8(%6)"));
}

TEST(PartitionCasesTest, BenefitOfFusingOutweighsDearerOperators) {
  const CoverReport cover = Partitioned(Parse(R"(
    %0 = nn.relu(%x); %1 = nn.relu(%0); %2 = abs(%x); %3 = nn.relu(%2); %4 = add(%1, %3); %5 = nn.relu(%4); abs(%5))"),
                                        1, 5, 5, 6);
  EXPECT_NEAR(cover.cost, 6 * 4.0951 + 10, 1e-9);
  EXPECT_EQ(Chosen(cover), "ext[nn.relu nn.relu nn.relu add nn.relu] llvm[abs] llvm[abs]");
  const FunctionNode* partition = nullptr;
  for (const DataflowNodeReport& node : InspectDataflow(cover.rewritten)) {
    if (node.label == "call_prim") partition = cover.rewritten.get();
  }
  EXPECT_NE(partition, nullptr);
  EXPECT_NE(PrintExpr(cover.rewritten).find("collage_ext_nn_relu_nn_relu_nn_relu_add_nn_relu"), std::string::npos);
}

TEST(PartitionCasesTest, ResidualsTwice) {
  const CoverReport cover =
      Partitioned(Parse("%0 = nn.relu(%x); %1 = abs(%0); %2 = add(%0, %1); add(%1, %2)"), 1, 4, 2, 1);
  EXPECT_EQ(Chosen(cover), "ext[nn.relu] llvm[abs] ext[add add]");
  const std::string add = Wrapped("add", kPQ, "add(%p, %q)");
  ExpectEqual(
      cover.rewritten,
      Parse("%1 = " + Ext(kP, "collage_ext_nn_relu", "%0 = " + Wrapped("relu", kP, "nn.relu(%p)") + "; %0(%p)") +
            "; %2 = %1(%x); %3 = abs(%2); %7 = " +
            Ext(kPQ, "collage_ext_add_add", "%4 = " + add + "; %5 = %4(%q, %p); %6 = " + add + "; %6(%p, %5)") +
            "; %7(%3, %2)"));
}

TEST(PartitionCasesTest, OneLargeCandidateTakesAll) {
  const CoverReport cover =
      Partitioned(Parse("%0 = nn.relu(%x); %1 = nn.relu(%0); %2 = add(%0, %1); add(%1, %2)"), 4, 4, 2, 1);
  EXPECT_EQ(Chosen(cover), "ext[nn.relu nn.relu add add]");
  EXPECT_NEAR(cover.cost, 1 + 0.9 + 0.81 + 0.729, 1e-12);
  EXPECT_LE(cover.num_costs, cover.num_candidates);
}

// ---- kinds of targets ----

TEST(PartitionCasesTest, LibraryCallsWithinNativeKernels) {
  // RFC 0.81: "consider this library implementation for these sub-expressions": Composites that no Primitive surrounds.
  const JsonText targets{R"([{"name": "llvm", "rule": {"rule": "OnlyValid", "config": {"max_exits": 1}, "sub_rule":
    {"rule": "Combine", "combiner_rules": [{"combiner": "AllSimple", "kinds": ["A->B"]}], "sub_rule": {"rule": "Union",
      "sub_rules": [{"rule": "OpCallByKind"}, )" +
                         Composite("cublas.dense_relu", "nn.relu(nn.dense(*, *))") + "]}}}}]"};
  const Function function = Parse("%0 = nn.dense(%x, %x); %1 = nn.relu(%0); exp(abs(%1))");
  // x 0, operators 1 to 4, dense 5, relu 6, abs 7, exp 8
  const JsonText costs{R"({"op_cost": {"llvm": 10}, "overrides": [{"target": "llvm", "inside": [5, 6], "cost": 1},
                           {"target": "llvm", "inside": [5, 6, 7, 8], "cost": 3}]})"};
  const CoverReport cover = PartitionByGivenCosts(function, targets, costs, /*rewrite=*/true);
  EXPECT_EQ(Chosen(cover), "llvm[nn.dense nn.relu abs exp]") << "one kernel";
  EXPECT_EQ(cover.cost, 3);
  ExpectEqual(cover.rewritten, Parse("%2 = " + Wrapped("cublas.dense_relu", kP, "%0 = nn.dense(%p, %p); nn.relu(%0)") +
                                     "; exp(abs(%2(%x)))"));
}

/// Registered toolchains that take everything.
class TextTargetsTest : public ::testing::Test {
 protected:
  TextTargetsTest() {
    ToolchainRegistry& registry = ToolchainRegistry::Global();
    if (registry.Find("acme") != nullptr) return;
    registry.Add(std::make_unique<testing_graphs::AnyToolchain>("native", FusionStyle::kTVMFusion));
    registry.Add(std::make_unique<testing_graphs::AnyToolchain>("acme"));
  }
};

TEST_F(TextTargetsTest, TargetsFindWhatTheirToolchainsTake) {
  const Function function = Parse("nn.relu(nn.relu(abs(%x)))");
  const CoverReport cover = PartitionByGivenCosts(function, {R"(["llvm", "llvm -compiler=acme"])"},
                                                  {R"({"op_cost": {"native": 3, "acme": 2}, "fusion_benefit": 0.5})"},
                                                  /*rewrite=*/true);
  EXPECT_EQ(Chosen(cover), "acme[abs nn.relu nn.relu]");
  EXPECT_NE(PrintExpr(cover.rewritten).find("Compiler=\"acme\""), std::string::npos);
}

TEST_F(TextTargetsTest, IncompatibleToolchainsAreNotMixed) {
  class Loner : public testing_graphs::AnyToolchain {
   public:
    using AnyToolchain::AnyToolchain;
    std::vector<Incompatibility> Incompatible() const override { return {{"acme", "for the test"}}; }
  };
  if (ToolchainRegistry::Global().Find("loner") == nullptr) {
    ToolchainRegistry::Global().Add(std::make_unique<Loner>("loner"));
  }
  const Function function = Parse("nn.relu(nn.relu(abs(%x)))");
  const JsonText costs{R"({"op_cost": {"acme": {"abs": 1, "*": 9}, "loner": {"abs": 9, "*": 1}, "llvm": 4}})"};
  EXPECT_EQ(
      PartitionByGivenCosts(function, {R"(["llvm -compiler=loner", {"name": "llvm", "target": "llvm"}])"}, costs).cost,
      2 + 4);
  const CoverReport cover = PartitionByGivenCosts(
      function, {R"(["llvm -compiler=acme", "llvm -compiler=loner", {"name": "llvm", "target": "llvm"}])"}, costs);
  EXPECT_EQ(cover.cost, 2 + 4) << "mixed, it would be 3";
  EXPECT_EQ(Chosen(cover).find("acme"), std::string::npos) << Chosen(cover);
}

TEST_F(TextTargetsTest, SeveralOfOneToolchainHaveCostsOfTheirOwn) {
  const Function function = Parse("nn.relu(nn.relu(abs(%x)))");
  const std::string only_abs = R"(llvm -compiler=acme -partition_rule='{\"rule\": \"Primitive\", \"sub_rule\": )"
                               R"({\"rule\": \"DFPattern\", \"pattern\": \"abs(*)\"}}')";
  const CoverReport cover = PartitionByGivenCosts(
      function, {R"(["llvm -compiler=acme", ")" + only_abs + R"(", {"name": "mine", "target": "llvm"}])"},
      {R"({"op_cost": {"acme": 5, "acme_1": 1, "mine": {"nn.relu": 2, "*": 9}},
           "fusion_benefit": 0.5})"},
      /*rewrite=*/true);
  EXPECT_EQ(Chosen(cover), "acme_1[abs] mine[nn.relu nn.relu]");
  EXPECT_EQ(cover.cost, 4);
  EXPECT_NE(PrintExpr(cover.rewritten).find("Compiler=\"acme\""), std::string::npos) << "the toolchain's name";
}

TEST_F(TextTargetsTest, PlannedDevicesDecideWhoMayRunWhat) {
  const IRModule module = RunPasses({"PlanDevices"}, ParseModule(R"(
def @main(%x: Tensor[(10, 10), float32]) {
  %0 = on_device(exp(%x), device_type=2);
  %1 = tanh(%0);
  abs(%1)
})"));
  const JsonText costs{R"({"op_cost": {"acme": 1, "acme_1": 1}, "fusion_benefit": 0.5})"};
  const CoverReport cover = PartitionByGivenCosts(
      module.main(), {R"(["llvm -compiler=acme", "cuda -compiler=acme", "llvm", "cuda"])"}, costs);
  for (const PartitionReport& partition : cover.partitions) {
    const bool is_exp = partition.ops == std::vector<std::string>{"exp"};
    EXPECT_EQ(partition.target, is_exp ? "acme_1" : "acme");
  }
  EXPECT_EQ(cover.partitions.size(), 2u);
  try {
    PartitionByGivenCosts(module.main(), {R"(["llvm"])"}, costs);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("no cover: 'exp'"), std::string::npos) << error.message();
  }
}

TEST_F(TextTargetsTest, MistakesNameThePlaceInTheList) {
  const auto message = [](const std::string& targets) -> std::string {
    try {
      PartitionByGivenCosts(Parse("abs(%x)"), {targets, "t.json"}, {"{}"});
    } catch (const Error& error) {
      return error.where() + ": " + error.message();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(message(R"(["llvm", "lvm"])"),
            "t.json:1:10: there is no kind of target 'lvm', at character 1 of target 'lvm'");
  EXPECT_TRUE(message(R"(["llvm -compiler=amce"])").starts_with("t.json:1:2: there is no toolchain 'amce'"));
  EXPECT_TRUE(message(R"(["llvm -compiler=acme -x=1"])").starts_with("t.json:1:2: there is no option 'x' of 'acme'"));
  EXPECT_TRUE(message(R"(["llvm -partition_rule='{\"rule\": \"Hots\"}'"])").find("there is no rule 'Hots'") !=
              std::string::npos);
  EXPECT_EQ(message(R"([{"name": "a", "target": "llvm", "rule": {"rule": "Host"}}])"),
            "t.json:1:42: unknown field 'rule'");
}

// ---- costs of single candidates ----

/// abs(x); relu; relu: calls 3, 4, 5.
const char* kStd = "nn.relu(nn.relu(abs(%x)))";
JsonText OneTarget(const std::string& rule) {
  return {R"([{"name": "llvm", "external": true, "rule": )" + rule + "}]"};
}
const char* kPairs = R"({"rule": "Primitive", "sub_rule": {"rule": "Combine", "max_depth": 2, "combiner_rules":
                         [{"combiner": "JoinAnything"}], "sub_rule": {"rule": "OpCallByKind"}}})";

double CostOf(const CoverReport& cover, const std::vector<int>& inside) {
  for (const PartitionReport& partition : cover.partitions) {
    if (partition.inside == inside) return partition.cost;
  }
  ADD_FAILURE() << "not chosen";
  return -1;
}

TEST(CandidateCostsTest, OperatorsFromTheLastOneOnEachAtABenefit) {
  const JsonText costs{R"({"op_cost": {"llvm": 3}, "fusion_benefit": 0.9,
                           "overrides": [{"target": "llvm", "inside": [4, 5], "cost": "invalid"}]})"};
  EXPECT_NEAR(CostOf(PartitionByGivenCosts(Parse(kStd), OneTarget(kPairs), costs), {3, 4}), 5.7, 1e-12);
}

TEST(CandidateCostsTest, GivenOnesStay) {
  const JsonText costs{
      R"({"op_cost": {"llvm": 300}, "overrides": [{"target": "llvm", "inside": [3, 4], "cost": 42}]})"};
  EXPECT_EQ(CostOf(PartitionByGivenCosts(Parse(kStd), OneTarget(kPairs), costs), {3, 4}), 42);
}

TEST(CandidateCostsTest, InvalidOnesAreNeverChosen) {
  const JsonText costs{R"({"op_cost": {"llvm": 3}, "overrides": [
      {"target": "llvm", "inside": [3, 4], "cost": "invalid"}, {"target": "llvm", "inside": [4, 5], "cost": "invalid"}]})"};
  EXPECT_EQ(PartitionByGivenCosts(Parse(kStd), OneTarget(kPairs), costs).partitions.size(), 3u);
}

TEST(CandidateCostsTest, EqualFunctionsAreEstimatedOnce) {
  // abs 3, relu 4, abs 5, relu 6: {3, 4} and {5, 6} are equal
  const std::string abs_relu = R"([{"name": "llvm", "external": true, "rule": {"rule": "Primitive", "sub_rule": )" +
                               Composite("abs_relu", "nn.relu(abs(*))") + "}}]";
  int times = 0;
  const CoverReport cover =
      PartitionByGivenCosts(Parse("nn.relu(abs(nn.relu(abs(%x))))"), {abs_relu}, {"{}"}, /*rewrite=*/false,
                            [&](const Function&, const std::string&) { return ++times == 1 ? 5.7 : 7.0; });
  EXPECT_EQ(times, 1);
  EXPECT_EQ(cover.cost, 11.4);
}

TEST(CandidateCostsTest, TuplesThatComeInCostNothing) {
  const JsonText costs{R"({"op_cost": {"llvm": 3}})"};
  const CoverReport cover = PartitionByGivenCosts(Parse("concatenate((abs(%x), nn.relu(%x)))"),
                                                  OneTarget(R"({"rule": "OpCallByKind"})"), costs);
  EXPECT_EQ(cover.cost, 9);
  for (const PartitionReport& partition : cover.partitions) EXPECT_EQ(partition.cost, 3);
}

}  // namespace
}  // namespace collage
