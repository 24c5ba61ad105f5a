// Hill climbing over schedules: numbers, each next to the one before and behind it.
#include "driver/tuning/schedule_tuning.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "unit/partition/graphs.h"

namespace collage {
namespace {

/// Schedules "1" to "9" beside the default, which is 0. What each costs, by workload.
class FakeEstimator : public CostEstimator {
 public:
  std::map<std::string, std::vector<double>> seconds;
  std::vector<std::string> asked;  ///< "workload schedule", in order
  bool is_adopting = true;

  TuningRecord Estimate(const CostQuery& query) override { return RecordOf(query, ""); }
  double ConvertSeconds(const Shape&, DataType, Layout, Layout) override { return 0; }
  bool TriesSchedules() const override { return true; }
  std::vector<std::string> SchedulesNear(const CostQuery& query, const std::string& schedule) override {
    const size_t at = NumberOf(schedule);
    std::vector<std::string> near;
    if (at > 0) near.push_back(TextOf(at - 1));
    if (at + 1 < seconds.at(query.workload).size()) near.push_back(TextOf(at + 1));
    return near;
  }
  std::vector<TuningRecord> TrySchedules(const CostQuery& query, const std::vector<std::string>& schedules,
                                         const std::function<bool()>& may_go_on) override {
    std::vector<TuningRecord> records;
    for (const std::string& schedule : schedules) {
      const std::string key = query.workload + " " + schedule;
      if (known_.contains(key)) {
        ++counts_.known_trials;
      } else if (may_go_on()) {
        ++counts_.trials;
        asked.push_back(key);
        known_.insert(key);
      } else {
        records.emplace_back().is_skipped = true;
        continue;
      }
      records.push_back(RecordOf(query, schedule));
    }
    return records;
  }
  TuningRecord AdoptIfFaster(const CostQuery& query, const std::string& schedule) override {
    if (is_adopting) adopted_[query.workload] = schedule;
    return RecordOf(query, adopted_[query.workload]);
  }

 private:
  static size_t NumberOf(const std::string& text) { return text.empty() ? 0 : std::stoul(text); }
  static std::string TextOf(size_t number) { return number == 0 ? "" : std::to_string(number); }
  TuningRecord RecordOf(const CostQuery& query, const std::string& schedule) const {
    TuningRecord record;
    record.p50 = seconds.at(query.workload).at(NumberOf(schedule));
    record.ok = record.p50 > 0;
    record.schedule = schedule;
    return record;
  }
  std::set<std::string> known_;
  std::map<std::string, std::string> adopted_;
};

class ScheduleTuningTest : public testing::Test {
 protected:
  void Add(const std::string& workload, double gain, std::vector<double> seconds) {
    estimator_.seconds[workload] = std::move(seconds);
    const std::string& kept = estimator_.seconds.find(workload)->first;
    const CostQuery query{kept, layouts_, work_, toolchain_, {0}, workload};
    tasks_.push_back({query, estimator_.Estimate(query)});
    gains_.push_back(gain);
  }
  TuningReport Tune(const ScheduleLimits& limits) {
    return TuneSchedules(estimator_, tasks_, limits, [&](std::vector<ScheduleTask>& tasks) {
      for (size_t i = 0; i < tasks.size(); ++i) {
        tasks[i].gain = gains_[i];
        tasks[i].can_win = can_win_(tasks[i]);
      }
    });
  }

  const testing_graphs::AnyToolchain toolchain_{"native", FusionStyle::kTVMFusion, 3};
  const BoundaryLayouts layouts_;
  const Work work_{};
  FakeEstimator estimator_;
  std::vector<ScheduleTask> tasks_;
  std::vector<double> gains_;
  std::function<bool(const ScheduleTask&)> can_win_ = [](const ScheduleTask&) { return true; };
};

const ScheduleLimits kPlenty{.trials = 1000};

TEST_F(ScheduleTuningTest, ClimbsUntilNoNeighbourIsFaster) {
  Add("a", 0.5, {10, 8, 6, 5, 7, 1});
  const TuningReport report = Tune(kPlenty);
  EXPECT_EQ(tasks_[0].record.schedule, "3") << "5 is behind a slower one";
  EXPECT_EQ(report.partitions, 1);
  EXPECT_EQ(report.faster, 1);
  EXPECT_EQ(report.trials, 4);
  EXPECT_FALSE(report.budget_spent);
}

TEST_F(ScheduleTuningTest, WhatFailsOrIsHardlyFasterIsNotTaken) {
  Add("fails", 0.5, {10, -1});
  Add("hardly", 0.5, {10, 9.9});
  const TuningReport report = Tune(kPlenty);
  EXPECT_EQ(tasks_[0].record.schedule, "");
  EXPECT_EQ(tasks_[1].record.schedule, "");
  EXPECT_EQ(report.faster, 0);
}

TEST_F(ScheduleTuningTest, WhatIsNotConfirmedIsNotTaken) {
  estimator_.is_adopting = false;
  Add("a", 0.5, {10, 8, 6});
  EXPECT_EQ(Tune(kPlenty).faster, 0);
  EXPECT_EQ(tasks_[0].record.p50, 10);
}

TEST_F(ScheduleTuningTest, GreatGainsComeFirstAndLeaveSomethingToOthers) {
  Add("small", 0.2, {10, 9, 8, 7});
  Add("large", 0.5, {10, 9, 8, 7, 6, 5});
  EXPECT_EQ(Tune(kPlenty).partitions, 2);
  const std::vector<std::string> first(estimator_.asked.begin(), estimator_.asked.begin() + 4);
  EXPECT_EQ(first, (std::vector<std::string>{"large 1", "large 2", "small 1", "large 3"}));
}

TEST_F(ScheduleTuningTest, WhatCannotWinIsNotTriedHoweverMuchItTakes) {
  Add("a", 0.1, {10, 9});
  Add("lost", 0.9, {100, 9});
  can_win_ = [](const ScheduleTask& task) { return task.query.workload != "lost"; };
  EXPECT_EQ(Tune(kPlenty).partitions, 1);
  EXPECT_EQ(estimator_.asked, (std::vector<std::string>{"a 1"}));
}

TEST_F(ScheduleTuningTest, WhatCanWinNoMoreIsLeft) {
  Add("a", 0.5, {10, 9, 8, 7});
  Add("b", 0.4, {10, 9, 8, 7});
  can_win_ = [&](const ScheduleTask& task) { return task.query.workload == "a" || tasks_[0].record.p50 > 8; };
  Tune(kPlenty);
  EXPECT_EQ(tasks_[0].record.schedule, "3");
  EXPECT_EQ(tasks_[1].record.schedule, "1") << "a, at 8, is beyond it";
}

TEST_F(ScheduleTuningTest, TheBudgetEndsItAndTheNextGoesOn) {
  Add("a", 0.5, {10, 9, 8, 7, 6, 5});
  const TuningReport report = Tune({.trials = 2});
  EXPECT_EQ(report.trials, 2);
  EXPECT_TRUE(report.budget_spent);
  EXPECT_EQ(tasks_[0].record.schedule, "2");
  EXPECT_FALSE(Tune(kPlenty).budget_spent);
  EXPECT_EQ(tasks_[0].record.schedule, "5");
  const TuningReport again = Tune(kPlenty);
  EXPECT_EQ(again.trials, 0);
  EXPECT_EQ(tasks_[0].record.schedule, "5");
  EXPECT_TRUE(Tune({.seconds = 1e-9, .should_stop = {}}).trials == 0);
}

TEST_F(ScheduleTuningTest, StopsWhenTold) {
  Add("a", 0.5, {10, 9, 8, 7, 6, 5});
  const TuningReport report = Tune({.trials = 100, .should_stop = [&] { return estimator_.asked.size() >= 3; }});
  EXPECT_EQ(report.trials, 3);
  EXPECT_TRUE(report.budget_spent);
}

}  // namespace
}  // namespace collage
