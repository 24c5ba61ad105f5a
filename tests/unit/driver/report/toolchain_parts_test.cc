// The report of a program with dynamic shapes accounts for every toolchain that is available.
#include "driver/report/toolchain_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "collage/ir/text.h"
#include "collage/target/symbolic_sizes.h"
#include "support/file.h"
#include "unit/driver/listener.h"

namespace collage {
namespace {

const std::string kOpen = "def @main(%x: Tensor[(?, 3), float32]) { nn.softmax(nn.relu(%x), axis=1) }";

class ToolchainPartsTest : public testing::Test {
 protected:
  ToolchainPartsTest() { ProbeToolchains(); }

  CompileReport Compile(const std::string& text, CompileOptions options) {
    options.output = folder_ / "model.clg";
    options.database = (folder_ / "tuning.db").string();
    options.num_threads = 1;
    options.progress = &listener_;
    return CompileModule(ParseModule(text, "m.relay"), "m", options);
  }

  /// Every toolchain that is available, each once, has a part or a reason in both columns.
  static void ExpectAllAccountedFor(const CompileReport& report) {
    std::multiset<std::string> expected, found;
    for (const ToolchainReport& toolchain : ProbeToolchains()) {
      if (toolchain.available) expected.insert(toolchain.name);
    }
    for (const ToolchainPart& part : report.parts) {
      found.insert(part.toolchain);
      EXPECT_EQ(part.any_size_kernels == 0, !part.not_at_any_size.empty()) << part.toolchain;
      EXPECT_EQ(part.plan_partitions == 0, !part.not_in_plans.empty()) << part.toolchain;
    }
    EXPECT_EQ(found, expected);
  }

  static ToolchainPart PartOf(const CompileReport& report, const std::string& toolchain) {
    const auto part = std::ranges::find(report.parts, toolchain, &ToolchainPart::toolchain);
    return part == report.parts.end() ? ToolchainPart() : *part;
  }

  TemporaryFolder folder_;
  Listener listener_;
};

TEST_F(ToolchainPartsTest, WithoutNamedSizesNoToolchainHasPlans) {
  const CompileReport report = Compile(kOpen, {});
  ExpectAllAccountedFor(report);
  EXPECT_EQ(PartOf(report, "native").any_size_kernels, 1);
  EXPECT_EQ(PartOf(report, "native").not_in_plans, "no part of the model has known sizes: name some with --tune-at");
  for (const ToolchainPart& part : report.parts) {
    const Toolchain& toolchain = *ToolchainRegistry::Global().Find(part.toolchain);
    if (toolchain.is_native() || !toolchain.is_default() || CompilesSymbolicSizes(toolchain)) continue;
    EXPECT_EQ(part.not_at_any_size, "needs to know all shapes") << part.toolchain;
  }
}

TEST_F(ToolchainPartsTest, ToolchainsThatTheUserLeftOutSayWhy) {
  CompileOptions options;
  options.tune_at = {{"x[0]", {64, 128}}};
  options.partition_for = "native";
  options.budget_seconds = 0;
  const CompileReport report = Compile(kOpen, options);
  ExpectAllAccountedFor(report);
  EXPECT_GE(PartOf(report, "native").plan_partitions, 2);
  for (const ToolchainPart& part : report.parts) {
    if (part.toolchain == "native") continue;
    EXPECT_EQ(part.not_in_plans, "'native' is to be alone") << part.toolchain;
    EXPECT_EQ(part.not_at_any_size, "'native' is to be alone") << part.toolchain;
  }
}

TEST_F(ToolchainPartsTest, StaticModelsHaveNoParts) {
  CompileOptions options;
  options.partition_for = "native";
  options.budget_seconds = 0;
  EXPECT_TRUE(Compile("def @main(%x: Tensor[(4, 3), float32]) { nn.relu(%x) }", options).parts.empty());
}

TEST_F(ToolchainPartsTest, ReasonsFollowFromContenders) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(4, 3), float32]) { nn.relu(%x) }", "m.relay");
  const Toolchain& native = *ToolchainRegistry::Global().Native();
  const auto contender = [](const std::string& name, std::map<std::string, int> partitions, std::string failure = "") {
    Contender one{.name = name};
    one.partitions = std::move(partitions);
    one.failure = std::move(failure);
    return one;
  };
  const auto reason = [&](const std::vector<Contender>& contenders) {
    CompileReport report;
    CompileReport& region = report.regions.emplace_back();
    region.contenders = contenders;
    region.winner = "acme";
    return FindToolchainParts({{&native, ""}}, report, module, {}).at(0).not_in_plans;
  };
  const Contender winner = contender("acme", {{"acme -level=3", 2}});
  EXPECT_EQ(reason({winner}), "no partitioning that was tried has a partition of it");
  EXPECT_EQ(reason({winner, contender("native", {{"native", 3}})}), "other partitionings were faster");
  EXPECT_EQ(reason({winner, contender("native", {{"native", 3}}, "crashed with signal 11")}), "crashed with signal 11");
  EXPECT_EQ(reason({contender("acme", {{"acme", 1}, {"native", 1}})}), "");
}

}  // namespace
}  // namespace collage
