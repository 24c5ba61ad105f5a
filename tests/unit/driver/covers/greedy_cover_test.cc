#include "driver/covers/greedy_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost/estimator/estimators.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Operators of the partitions of abs, relu and relu in the cover by functions of FuseOps of at most `max_calls`.
std::vector<std::string> Fused(int64_t max_calls, const char* costs = R"({"op_cost": {"native": 1}})") {
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native});
  const Candidates candidates(testing_graphs::Std(), specs, 1);
  const std::unique_ptr<CostEstimator> estimator = MakeGivenEstimator(GivenCosts({costs}), candidates);
  Partitioner partitioner(candidates, *estimator);
  const std::optional<Cover> cover = FuseOpsCover(partitioner, native, nullptr, max_calls);
  std::vector<std::string> operators;
  if (!cover) return operators;
  for (const ChosenPartition& one : partitioner.ChosenOf(*cover)) {
    operators.push_back(one.candidate->sub_graph.OperatorLabel(candidates.graph()));
  }
  std::ranges::sort(operators);
  return operators;
}

using Operators = std::vector<std::string>;

TEST(GreedyCoverTest, FuseOpsCoversHaveAPartitionForEachFunction) {
  EXPECT_EQ(Fused(256), (Operators{"abs+nn.relu+nn.relu"}));
  EXPECT_EQ(Fused(2), (Operators{"abs+nn.relu", "nn.relu"}));
  EXPECT_EQ(Fused(1), (Operators{"abs", "nn.relu", "nn.relu"}));
}

TEST(GreedyCoverTest, AFunctionThatFailsWholeIsSplitAndOthersTakeNoneOfIt) {
  const auto without = [](const std::string& nodes) {
    return R"({"overrides": [{"target": "native", "inside": [)" + nodes + R"(], "cost": "invalid"}]})";
  };
  EXPECT_EQ(Fused(256, without("3, 4, 5").c_str()), (Operators{"abs+nn.relu", "nn.relu"}));
  // The two relus are a candidate, but of two functions.
  EXPECT_EQ(Fused(2, without("3, 4").c_str()), (Operators{"abs", "nn.relu", "nn.relu"}));
  EXPECT_EQ(Fused(2, without("5").c_str()), Operators()) << "nothing else in its function has the last relu";
}

TEST(GreedyCoverTest, NodesMayBeGivenAndReachingBeyondThemIsRefused) {
  const testing_graphs::AnyToolchain native("native", FusionStyle::kTVMFusion, 8);
  const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&native});
  const Candidates candidates(testing_graphs::Std(), specs, 1);
  const std::unique_ptr<CostEstimator> estimator = MakeGivenEstimator(GivenCosts({"{}"}), candidates);
  Partitioner partitioner(candidates, *estimator);
  const IndexSet nodes(candidates.graph().size(), {4, 5});
  const std::optional<Cover> cover = GreedyCover(partitioner, native, {.nodes = nodes}, nullptr);
  ASSERT_TRUE(cover.has_value());
  ASSERT_EQ(cover->variants.size(), 1U);
  EXPECT_EQ(candidates.CandidateOf(cover->variants[0]).sub_graph.members(), (std::vector<int>{4, 5}));
}

}  // namespace
}  // namespace collage
