#include "driver/covers/partition_for_cover.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cost/estimator/estimators.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Takes relus and what its patterns say; as a whole at most `most_calls` operators.
class Library : public testing_graphs::AnyToolchain {
 public:
  Library(const std::string& name, FusionStyle style, std::vector<std::string> patterns, size_t most_calls)
      : AnyToolchain(name, style, 1), patterns_(std::move(patterns)), most_calls_(most_calls) {}
  bool is_default() const override { return false; }
  Result<void> SupportsCall(const CallNode& call) const override {
    if (patterns_.empty() && call.op()->name == "nn.relu") return {};
    return Reason{"no such operator", name()};
  }
  std::vector<PatternTableEntry> PatternTable() const override {
    std::vector<PatternTableEntry> rows;
    for (const std::string& pattern : patterns_) {
      rows.push_back({name() + ".row" + std::to_string(rows.size()), pattern, {}});
    }
    return rows;
  }
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& inputs,
                                       const std::vector<bool>& outputs) const override {
    size_t num_calls = 0;
    for (const CallNode* call = As<CallNode>(function->body()); call != nullptr; call = As<CallNode>(call->args()[0])) {
      ++num_calls;
    }
    if (num_calls > most_calls_) return {};
    return AnyToolchain::Layouts(function, inputs, outputs);
  }

 private:
  std::vector<std::string> patterns_;
  size_t most_calls_;
};

const Toolchain& Registered(std::unique_ptr<Library> library) {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  const std::string name = library->name();
  if (registry.Find(name) == nullptr) registry.Add(std::move(library));
  return *registry.Find(name);
}

/// Partitions of `function` by the passes of a library, and native kernels.
class Passes {
 public:
  explicit Passes(const Toolchain& library, const Function& function = testing_graphs::Std(), const char* costs = "{}")
      : specs_(testing_graphs::SpecsOf({&library, &native_})),
        candidates_(function, specs_, 1),
        estimator_(MakeGivenEstimator(GivenCosts({costs}), candidates_)),
        partitioner_(candidates_, *estimator_),
        module_(IRModule::FromFunction(function)),
        found_(PartitionForCover(partitioner_, library, &native_, module_, PassContext(kLevel))) {}

  /// Toolchain and operators of each partition.
  std::vector<std::string> Partitions() const {
    std::vector<std::string> partitions;
    for (const ChosenPartition& one : found_->chosen) {
      const CandidatePartition& candidate = *one.candidate;
      partitions.push_back(candidate.toolchain->name() + ": " + candidate.sub_graph.OperatorLabel(candidates_.graph()));
    }
    EXPECT_TRUE(partitioner_.Apply(found_->chosen, module_).has_value());
    return partitions;
  }
  const Result<OwnedPartitions>& found() const { return found_; }

 private:
  static constexpr int kLevel = 2;
  const testing_graphs::AnyToolchain native_{"native", FusionStyle::kTVMFusion, 8};
  const std::vector<PartitionSpec> specs_;
  const Candidates candidates_;
  const std::unique_ptr<CostEstimator> estimator_;
  Partitioner partitioner_;
  const IRModule module_;
  const Result<OwnedPartitions> found_;
};

using Partitions = std::vector<std::string>;

TEST(PartitionForCoverTest, TheFirstRowThatMatchesIsTakenWhateverLargerOnesWould) {
  const Toolchain& library = Registered(std::make_unique<Library>(
      "rows_in_order", FusionStyle::kNoFusion, std::vector<std::string>{"nn.relu(*)", "nn.relu(nn.relu(*))"}, 9));
  const Passes passes(library);
  ASSERT_TRUE(passes.found().ok()) << passes.found().reason().text;
  EXPECT_EQ(passes.Partitions(), (Partitions{"native: abs", "rows_in_order: nn.relu", "rows_in_order: nn.relu"}));
  const CandidatePartition& first = *passes.found()->chosen[1].candidate;
  ASSERT_EQ(first.sub_graph.nested.size(), 1U);
  EXPECT_EQ(first.sub_graph.nested[0].attrs.StringOr("Composite", ""), "rows_in_order.row0");
  EXPECT_EQ(first.sub_graph.nested[0].inside, std::vector<int>{4});
}

TEST(PartitionForCoverTest, RegionsAreMergedBeyondCandidates) {
  const Toolchain& library =
      Registered(std::make_unique<Library>("region_merger", FusionStyle::kArbitrary, std::vector<std::string>{}, 9));
  const Passes passes(library, testing_graphs::Std(), R"({"op_cost": {"region_merger": 2}})");
  ASSERT_TRUE(passes.found().ok()) << passes.found().reason().text;
  EXPECT_EQ(passes.Partitions(), (Partitions{"native: abs", "region_merger: nn.relu+nn.relu"}));
  EXPECT_EQ(passes.found()->chosen[1].estimated_seconds, 0) << "candidates are single operators";
}

TEST(PartitionForCoverTest, WhatTheToolchainDoesNotTakeWholeIsARefusal) {
  const Toolchain& library =
      Registered(std::make_unique<Library>("one_at_a_time", FusionStyle::kArbitrary, std::vector<std::string>{}, 1));
  const Passes passes(library);
  ASSERT_FALSE(passes.found().ok());
  EXPECT_EQ(passes.found().reason().text, "partition 'nn.relu+nn.relu' is none that the toolchain takes whole");
}

TEST(PartitionForCoverTest, SoAreOperatorsThatNothingComputes) {
  const Toolchain& library =
      Registered(std::make_unique<Library>("leaves_abs", FusionStyle::kNoFusion, std::vector<std::string>{}, 9));
  const Passes passes(library, testing_graphs::Std(), R"({"unsupported": {"native": ["abs"]}})");
  ASSERT_FALSE(passes.found().ok());
  EXPECT_TRUE(passes.found().reason().text.starts_with("nothing computes the rest: 'abs'"))
      << passes.found().reason().text;
}

TEST(PartitionForCoverTest, ConstantsAndTuplesAreFoundAgain) {
  const Toolchain& library = Registered(std::make_unique<Library>(
      "takes_products", FusionStyle::kNoFusion, std::vector<std::string>{"add(nn.dense(*, const), const)"}, 9));
  const Passes passes(library, testing_graphs::GptTail());
  ASSERT_TRUE(passes.found().ok()) << passes.found().reason().text;
  const CandidatePartition& first = *passes.found()->chosen[0].candidate;
  EXPECT_EQ(first.toolchain, &library);
  EXPECT_EQ(first.sub_graph.members(), (std::vector<int>{5, 6, 7, 8})) << "with their constants";
}

}  // namespace
}  // namespace collage
