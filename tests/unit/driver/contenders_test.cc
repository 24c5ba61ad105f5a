// Covers that meet in the play-off beside those that searches find.
#include <gtest/gtest.h>

#include <algorithm>

#include "collage/compile.h"
#include "collage/ir/text.h"
#include "driver/builtins.h"
#include "driver/covers/cover_portfolio.h"
#include "support/file.h"

namespace collage {
namespace {

const Contender* Find(const CompileReport& report, const std::string& name) {
  const auto it = std::ranges::find(report.contenders, name, &Contender::name);
  return it == report.contenders.end() ? nullptr : &*it;
}

/// Compiles a product, a relu and an exponential, of which native kernels are said to be best at the last only.
CompileReport CompileForLibrary(const std::string& benefit) {
  const TemporaryFolder folder;
  CompileOptions options;
  options.output = folder / "m.clg";
  options.database = (folder / "tuning.db").string();
  options.num_threads = 1;
  options.toolchains = {"onednn_graph"};
  options.estimator =
      R"(mock={"op_cost": {"native": {"exp": 0.1, "*": 99}, "onednn_graph": 1}, "fusion_benefit": )" + benefit + "}";
  options.max_optimality_covers = 0;
  const IRModule module = ParseModule(
      "def @main(%x: Tensor[(8, 24), float32], %w: Tensor[(24, 24), float32]) { exp(nn.relu(nn.dense(%x, %w))) }", "m");
  return CompileModule(module, "m", options);
}

class ContendersTest : public testing::Test {
 protected:
  void SetUp() override {
    AddBuiltins();
    const Availability here = ToolchainRegistry::Global().Find("onednn_graph")->Probe();
    if (!here.available) GTEST_SKIP() << here.reason;
  }
};

TEST_F(ContendersTest, NeighboursOfALibraryAreMergedAfterTheSearch) {
  const CompileReport report = CompileForLibrary("9");
  const Contender* mix = Find(report, "collage");
  ASSERT_NE(mix, nullptr);
  EXPECT_EQ(mix->partitions, (std::map<std::string, int>{{"native", 1}, {"onednn_graph", 2}}));
  const Contender* merged = Find(report, kCoalescedCover);
  ASSERT_NE(merged, nullptr);
  EXPECT_EQ(merged->partitions, (std::map<std::string, int>{{"native", 1}, {"onednn_graph", 1}}));
  EXPECT_EQ(merged->failure, "");
  EXPECT_GT(merged->p50, 0);
}

TEST_F(ContendersTest, AMixWithoutNeighboursIsNotBuiltTwice) {
  EXPECT_EQ(Find(CompileForLibrary("0.5"), kCoalescedCover), nullptr);
}

}  // namespace
}  // namespace collage
