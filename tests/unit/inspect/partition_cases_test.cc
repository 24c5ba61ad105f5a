// partition_cases_test.cc: partitioning at given costs with registered toolchains, and at costs that a function gives.
// What rules, targets and tables of costs choose is shown by tests/golden/partition.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collage/inspect.h"
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

}  // namespace
}  // namespace collage
