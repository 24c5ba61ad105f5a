#include "driver/covers/goal_problem.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "unit/partition/graphs.h"

namespace collage {
namespace {

class Scheduled : public testing_graphs::AnyToolchain {
 public:
  Scheduled() : AnyToolchain("native", FusionStyle::kTVMFusion, 8) {}
  bool has_schedules() const override { return true; }
};

/// Costs of a partition by its own schedule, by schedule "1", and by the best that may be.
struct Costs {
  double own, tried, least;
};

/// Costs by operators.
class ByLabel : public CostEstimator {
 public:
  explicit ByLabel(std::map<std::string, Costs> costs) : costs_(std::move(costs)) {}

  TuningRecord Estimate(const CostQuery& query) override { return RecordOf(query, adopted_.contains(query.label)); }
  double ConvertSeconds(const Shape&, DataType, Layout, Layout) override { return 0; }
  double LowerBound(const CostQuery& query) override { return costs_.at(query.label).least; }
  double LeastOfSchedules(const CostQuery& query) override { return costs_.at(query.label).least; }
  bool TriesSchedules() const override { return true; }
  std::vector<std::string> SchedulesNear(const CostQuery&, const std::string& schedule) override {
    return {schedule.empty() ? "1" : ""};
  }
  std::vector<TuningRecord> TrySchedules(const CostQuery& query, const std::vector<std::string>& schedules,
                                         const std::function<bool()>&) override {
    std::vector<TuningRecord> records;
    for (const std::string& schedule : schedules) {
      tried.insert(query.label);
      records.push_back(RecordOf(query, schedule == "1"));
    }
    return records;
  }
  TuningRecord AdoptIfFaster(const CostQuery& query, const std::string& schedule) override {
    if (schedule == "1") adopted_.insert(query.label);
    return Estimate(query);
  }

  std::set<std::string> tried;  ///< operators

 private:
  TuningRecord RecordOf(const CostQuery& query, bool is_tried) const {
    TuningRecord record;
    record.ok = true;
    record.p50 = is_tried ? costs_.at(query.label).tried : costs_.at(query.label).own;
    record.schedule = is_tried ? "1" : "";
    return record;
  }

  std::map<std::string, Costs> costs_;
  std::set<std::string> adopted_;
};

/// Partitions of abs, relu and relu.
class GoalProblemTest : public testing::Test {
 protected:
  GoalProblemTest() : candidates_(testing_graphs::Std(), specs_, 1), partitioner_(candidates_, estimator_) {
    for (const VariantIndex variant : candidates_.variants().indices()) partitioner_.Exact(variant);
  }
  Cover Best() {
    return partitioner_.Search([](CandidateIndex) { return true; }, {}).covers.at(0);
  }
  void Tune() {
    partitioner_.TuneSchedules({{Best(), [](CandidateIndex) { return true; }}}, {.trials = 100});
  }

  const Scheduled native_;
  const std::vector<PartitionSpec> specs_ = testing_graphs::SpecsOf({&native_});
  const Candidates candidates_;
  ByLabel estimator_{{{"abs", {1, 1, 1}},
                      {"nn.relu", {1, 1, 1}},
                      {"abs+nn.relu", {9, 8, 2.5}},
                      {"nn.relu+nn.relu", {9, 3, 1.9}},
                      {"abs+nn.relu+nn.relu", {9, 1.5, 1.4}}}};
  Partitioner partitioner_;
};

TEST_F(GoalProblemTest, ASlowPartitionThatMayWinIsTunedAndThenChosen) {
  EXPECT_EQ(Best().variants.size(), 3U) << "one by one, 3 s";
  Tune();
  EXPECT_TRUE(estimator_.tried.contains("abs+nn.relu+nn.relu"));
  const Cover best = Best();
  ASSERT_EQ(best.variants.size(), 1U);
  EXPECT_EQ(best.seconds, 1.5);
  EXPECT_EQ(partitioner_.ChosenOf(best)[0].schedule, "1");
}

TEST_F(GoalProblemTest, WhatTheBoundRulesOutIsNotTried) {
  Tune();
  EXPECT_FALSE(estimator_.tried.contains("abs+nn.relu")) << "2.5 s, and a relu";
  EXPECT_FALSE(estimator_.tried.contains("nn.relu+nn.relu")) << "1.9 s are too many since all three take 1.5 s";
}

TEST_F(GoalProblemTest, GainsAreThoseOfOnePartitionAlone) {
  GoalProblem problem(partitioner_, {Best(), [](CandidateIndex) { return true; }}, 0);
  std::map<std::string, double> gains;
  for (const auto& [variant, gain] : problem.Gains()) {
    gains[candidates_.CandidateOf(variant).sub_graph.OperatorLabel(candidates_.graph())] = gain;
  }
  EXPECT_NEAR(gains.at("abs+nn.relu+nn.relu"), 1.6, 1e-6);
  EXPECT_NEAR(gains.at("abs"), 0, 1e-6) << "no schedule is faster";
}

TEST_F(GoalProblemTest, OnlyCandidatesThatTheGoalAllowsAreTried) {
  const auto is_single = [&](CandidateIndex candidate) { return candidates_.at(candidate).sub_graph.depth() == 1; };
  partitioner_.TuneSchedules({{Best(), is_single}}, {.trials = 100});
  EXPECT_FALSE(estimator_.tried.contains("abs+nn.relu+nn.relu"));
}

}  // namespace
}  // namespace collage
