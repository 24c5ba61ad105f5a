#include "driver/covers/coalesced_cover.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "cost/estimator/estimators.h"
#include "driver/covers/partitioner.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Takes chains of at most `most_calls` operators; a search finds single ones only.
class Library : public testing_graphs::AnyToolchain {
 public:
  explicit Library(size_t most_calls) : AnyToolchain("library", FusionStyle::kArbitrary, 1), most_calls_(most_calls) {}
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& inputs,
                                       const std::vector<bool>& outputs) const override {
    size_t calls = 0;
    for (const CallNode* call = As<CallNode>(function->body()); call != nullptr; call = As<CallNode>(call->args()[0])) {
      ++calls;
    }
    return calls > most_calls_ ? std::vector<BoundaryLayouts>() : Toolchain::Layouts(function, inputs, outputs);
  }

 private:
  size_t most_calls_;
};

class CoalescedCoverTest : public ::testing::Test {
 protected:
  /// Sizes of the partitions of abs, relu and relu, of which the library computes as `costs` says.
  std::vector<size_t> Merged(size_t most_calls, const char* costs, bool merges = true) {
    const Library library(most_calls);
    const testing_graphs::AnyToolchain native("native", FusionStyle::kNoFusion);
    const std::vector<PartitionSpec> specs = testing_graphs::SpecsOf({&library, &native});
    const Candidates candidates(testing_graphs::Std(), specs, 1);
    const std::unique_ptr<CostEstimator> estimator = MakeGivenEstimator(GivenCosts({costs}), candidates);
    Partitioner partitioner(candidates, *estimator);
    const SearchResult found = partitioner.Search([](CandidateIndex) { return true; }, {});
    const std::vector<ChosenPartition> chosen = partitioner.ChosenOf(found.covers.at(0));
    EXPECT_EQ(chosen.size(), 3u);
    const OwnedPartitions merged =
        Coalesced(candidates, chosen, [&](const PartitionSpec& spec) { return merges && spec.name == "library"; });
    std::vector<size_t> sizes;
    double seconds = 0;
    for (const ChosenPartition& one : merged.chosen) {
      sizes.push_back(one.candidate->sub_graph.members().size());
      seconds += one.estimated_seconds;
      EXPECT_NE(one.candidate->spec, nullptr);
    }
    EXPECT_DOUBLE_EQ(seconds, found.covers[0].seconds);
    const IRModule module = IRModule::FromFunction(testing_graphs::Std());
    EXPECT_TRUE(partitioner.Apply(merged.chosen, module).has_value());
    return sizes;
  }
};

TEST_F(CoalescedCoverTest, NeighboursOfOneLibraryBecomeOne) {
  EXPECT_EQ(Merged(3, R"({"op_cost": {"library": 1, "native": 9}})"), (std::vector<size_t>{3}));
}

TEST_F(CoalescedCoverTest, OthersStayAsTheyAre) {
  EXPECT_EQ(Merged(3, R"({"op_cost": {"library": {"nn.relu": 1, "*": 9}, "native": 2}})"), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(Merged(3, R"({"op_cost": {"library": 1, "native": 9}})", /*merges=*/false), (std::vector<size_t>{1, 1, 1}));
}

TEST_F(CoalescedCoverTest, SoDoPartsOfWhatTheLibraryDoesNotTakeWhole) {
  EXPECT_EQ(Merged(2, R"({"op_cost": {"library": 1, "native": 9}})"), (std::vector<size_t>{1, 1, 1}));
}

}  // namespace
}  // namespace collage
