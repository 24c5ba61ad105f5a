// Partitionings without a search, and those that evolve beyond candidates, meet the covers that searches find, and the
// apparent loss is against them.
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/compile.h"
#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "driver/builtins.h"
#include "driver/covers/cover_portfolio.h"
#include "support/file.h"
#include "unit/driver/fake_library.h"

namespace collage {
namespace {

const Contender* Find(const CompileReport& report, const std::string& name) {
  const auto it = std::ranges::find(report.contenders, name, &Contender::name);
  return it == report.contenders.end() ? nullptr : &*it;
}

/// Takes chains of relus, of which the candidates hold one each; says no to more than `most_calls`.
class ChainLibrary : public testing_library::FakeLibrary {
 public:
  ChainLibrary(const std::string& name, std::vector<PatternTableEntry> rows, size_t most_calls)
      : FakeLibrary(name), rows_(std::move(rows)), most_calls_(most_calls) {}
  FusionStyle fusion_style() const override { return FusionStyle::kArbitrary; }
  int max_depth() const override { return 1; }
  std::vector<PatternTableEntry> PatternTable() const override { return rows_; }
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& inputs,
                                       const std::vector<bool>& outputs) const override {
    size_t num_relus = 0;
    PostOrder(function, [&](const Expr& expr) {
      const CallNode* call = As<CallNode>(expr);
      num_relus += call != nullptr && call->op() != nullptr ? 1 : 0;
    });
    return num_relus > most_calls_ ? std::vector<BoundaryLayouts>() : FakeLibrary::Layouts(function, inputs, outputs);
  }

 private:
  std::vector<PatternTableEntry> rows_;
  size_t most_calls_;
};

void Register(const std::string& name, std::vector<PatternTableEntry> rows, size_t most_calls) {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find(name) != nullptr) return;
  AddKernelLoader(name, std::make_unique<testing_library::FakeLoader>());
  registry.Add(std::make_unique<ChainLibrary>(name, std::move(rows), most_calls));
}

/// tanh of `num_relus` relus of a matrix.
IRModule RelusThenTanh(int num_relus, const Shape& shape) {
  const Var x = testing_graphs::Param("x", shape);
  Expr value = x;
  for (int i = 0; i < num_relus; ++i) value = MakeCall("nn.relu", {value});
  return IRModule::FromFunction(testing_graphs::Typed({x}, MakeCall("tanh", {value})));
}

class BaselinesTest : public testing::Test {
 protected:
  BaselinesTest() { AddBuiltins(); }

  CompileOptions Options() const {
    CompileOptions options;
    options.output = folder_ / "m.clg";
    options.database = (folder_ / "tuning.db").string();
    options.num_threads = 1;
    options.toolchains = {"native"};
    options.estimator = R"(mock={"op_cost": {"native": 1}})";
    options.max_optimality_covers = 0;
    return options;
  }

  const IRModule module_ = ParseModule(
      "def @main(%x: Tensor[(8, 24), float32], %w: Tensor[(24, 24), float32]) { nn.relu(tanh(nn.dense(%x, %w))) }",
      "m");
  const TemporaryFolder folder_;
};

TEST_F(BaselinesTest, ThePlaceOfAReshapeMakesNoContender) {
  // The search trims it from the end of a candidate, the passes of partition_for leave it inside.
  const IRModule module =
      ParseModule("def @main(%x: Tensor[(4, 8), float32]) { reshape(nn.relu(tanh(%x)), newshape=[2, 16]) }", "m");
  CompileOptions options = Options();
  options.toolchains = {"native", "openvino"};
  options.estimator = R"(mock={"op_cost": {"native": 10, "openvino": 1}})";
  const CompileReport report = CompileModule(module, "m", options);
  EXPECT_EQ(Find(report, "partition_for_openvino"), nullptr);
  EXPECT_EQ(report.apparent_loss_seconds.count("partition_for_openvino"), 1U);
}

TEST_F(BaselinesTest, FuseOpsIsInThePlayOff) {
  CompileOptions options = Options();
  options.pass_context.SetConfig("relay.FuseOps.max_depth", int64_t{2});
  const CompileReport report = CompileModule(module_, "m", options);
  const Contender* fused = Find(report, "native-fuse-ops");
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(fused->failure, "");
  EXPECT_TRUE(fused->is_single);
  EXPECT_EQ(fused->partitions.at("native"), 2) << "nn.dense with tanh, nn.relu";
  EXPECT_GT(fused->p50, 0);
  EXPECT_TRUE(report.apparent_loss_seconds.contains("native-fuse-ops"));
}

TEST_F(BaselinesTest, WhatIsEqualIsTimedOnceAndReportedUnderBothNames) {
  CompileOptions options = Options();
  options.num_covers = 1;
  const CompileReport report = CompileModule(module_, "m", options);
  EXPECT_EQ(Find(report, "native-fuse-ops"), nullptr) << "it is what the toolchain alone gives";
  EXPECT_EQ(report.apparent_loss_seconds.at("native-fuse-ops"), report.apparent_loss_seconds.at("native"));
}

TEST_F(BaselinesTest, WithoutASearchThereIsTheToolchainAlone) {
  CompileOptions options = Options();
  options.partition_for = "native";
  options.pass_context.SetConfig("relay.FuseOps.max_depth", int64_t{2});
  const CompileReport report = CompileModule(module_, "m", options);
  ASSERT_EQ(report.contenders.size(), 1U);
  EXPECT_EQ(report.contenders[0].name, "native");
}

TEST_F(BaselinesTest, WhatThePassesOfPartitionForMakeIsInThePlayOff) {
  Register("chains", {}, 9);
  CompileOptions options = Options();
  options.toolchains = {"native", "chains"};
  options.estimator = R"(mock={"op_cost": {"native": 9, "chains": 1}})";
  const CompileReport report = CompileModule(RelusThenTanh(3, {8, 24}), "m", options);
  const Contender* real = Find(report, "partition_for_chains");
  ASSERT_NE(real, nullptr);
  EXPECT_EQ(real->failure, "");
  EXPECT_EQ(real->partitions, (std::map<std::string, int>{{"chains", 1}, {"native", 1}})) << "regions are merged";
  EXPECT_GT(real->p50, 0);
  EXPECT_EQ(Find(report, "chains")->partitions.at("chains"), 3) << "by candidates";
  EXPECT_TRUE(report.apparent_loss_seconds.contains("partition_for_chains"));
  EXPECT_FALSE(report.apparent_loss_seconds.contains("partition_for_native")) << "FuseOps stands for it";
}

TEST_F(BaselinesTest, WhereItIsWhatCandidatesGiveItIsTimedOnce) {
  Register("chains", {}, 9);
  CompileOptions options = Options();
  options.toolchains = {"native", "chains"};
  const CompileReport report = CompileModule(RelusThenTanh(1, {8, 24}), "m", options);
  EXPECT_EQ(Find(report, "partition_for_chains"), nullptr);
  EXPECT_EQ(report.apparent_loss_seconds.at("partition_for_chains"), report.apparent_loss_seconds.at("chains"));
}

TEST_F(BaselinesTest, WhatCannotBeBuiltIsOutWithTheReason) {
  Register("short_chains", {}, 1);
  CompileOptions options = Options();
  options.toolchains = {"native", "short_chains"};
  const CompileReport report = CompileModule(RelusThenTanh(3, {8, 24}), "m", options);
  const Contender* real = Find(report, "partition_for_short_chains");
  ASSERT_NE(real, nullptr);
  EXPECT_EQ(real->failure, "partition 'nn.relu+nn.relu+nn.relu' is none that the toolchain takes whole");
  EXPECT_FALSE(report.apparent_loss_seconds.contains("partition_for_short_chains"));
}

TEST_F(BaselinesTest, EvolutionMergesBeyondCandidates) {
  // No pass takes the row, so that nothing but evolution makes partitions of several relus.
  Register("searched_chains", {{"searched_chains.relu", "nn.relu(*)", {}, /*is_greedy=*/false}}, 99);
  CompileOptions options = Options();
  options.toolchains = {"native", "searched_chains"};
  options.estimator = R"(mock={"op_cost": {"native": 1, "searched_chains": 2}, "fusion_benefit": 9})";
  options.search = "evolutionary";
  options.evolution_seconds = 6;
  options.evolution_population = 2;
  // One pass over the matrix in place of 32, whatever the two kernels take for one.
  const CompileReport report = CompileModule(RelusThenTanh(32, {512, 512}), "m", options);
  const Contender* best = Find(report, "native-search");
  ASSERT_NE(best, nullptr) << "the best mix by costs";
  EXPECT_EQ(best->partitions, (std::map<std::string, int>{{"native", 33}}));
  const Contender* evolved = Find(report, kEvolvedCover);
  ASSERT_NE(evolved, nullptr);
  EXPECT_EQ(evolved->partitions, (std::map<std::string, int>{{"native", 1}, {"searched_chains", 1}}));
  EXPECT_EQ(evolved->failure, "");
  EXPECT_LT(evolved->p50, best->p50);
}

}  // namespace
}  // namespace collage
