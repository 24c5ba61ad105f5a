// measuring_estimator.h: costs by measurement, remembered in the tuning database.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cost/estimator/estimator.h"
#include "cost/runner/runner.h"

namespace collage {

/// Database first, then the runner; every answer is committed before it is returned.
class MeasuringEstimator : public CostEstimator {
 public:
  struct Options {
    std::string machine;  ///< hardware fingerprint
    MeasureContext context;
    /// For measuring; 0: nothing is measured.
    double budget_seconds = std::numeric_limits<double>::infinity();
    std::optional<int64_t> max_measurements;      ///< empty = no limit
    std::function<bool()> should_stop;            ///< asked before each measurement; may be empty
    std::function<bool()> pauses;                 ///< likewise: a pause, after which the search is begun again
    std::map<std::string, std::string> versions;  ///< versions of toolchains, part of the keys
  };
  /// Told before each measurement.
  using OnMeasure = std::function<void(const EstimatorCounts&, const std::string& label)>;

  /// `candidates` is asked only when the runner needs whole partitions.
  MeasuringEstimator(TuningDatabase& database, std::unique_ptr<Runner> runner, const CandidateSource& candidates,
                     Options options, OnMeasure on_measure);

  TuningRecord Estimate(const CostQuery& query) override;
  std::vector<TuningRecord> EstimateAll(const std::vector<CostQuery>& queries) override;
  /// Measures them in turn, a few times, unless that was done before.
  std::vector<TuningRecord> BreakTies(const std::vector<CostQuery>& rivals) override;
  bool TriesSchedules() const override { return true; }
  std::vector<std::string> SchedulesNear(const CostQuery& query, const std::string& schedule) override;
  std::vector<TuningRecord> TrySchedules(const CostQuery& query, const std::vector<std::string>& schedules,
                                         const std::function<bool()>& may_go_on) override;
  std::vector<TuningRecord> TrialsOf(const CostQuery& query) override;
  TuningRecord AdoptIfFaster(const CostQuery& query, const std::string& schedule) override;
  int NumAtOnce() const override { return runner_->num_at_once(); }
  /// Returns the cost in the database, else the bound by the toolchain's smallest call and the roofline.
  double LowerBound(const CostQuery& query) override;
  double LeastOfSchedules(const CostQuery& query) override;
  bool IsAtHand(const CostQuery& query) override { return Find(KeyOf(query)) != nullptr; }
  bool KnowsWhatCompiles() const override { return true; }
  bool FindsOut() const override { return MayMeasure(); }
  /// The percentile that is timed for.
  double CostOf(const TuningRecord& record) const override {
    return record.Quantile(options_.context.timing.percentile);
  }
  double ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) override;
  bool IsConversionAtHand(const Shape& shape, DataType dtype, Layout from, Layout to) override {
    return from == to || Find(Keyed(ConversionOf(shape, dtype, from, to))) != nullptr;
  }
  double TransitionSeconds() override;
  /// Timings of one candidate differ by more from one day to the next.
  double Noise() const override { return 0.005; }
  double SwitchSeconds(const Toolchain& from, const Toolchain& to) override;
  /// Measured once for each kind of machine and number of threads.
  MachineRates Rates() override;
  void ForgetSkipped() override;
  void SetBudget(double seconds) override { options_.budget_seconds = seconds; }
  void Rest() override { runner_->Rest(); }

  TuningKey KeyOf(const CostQuery& query) const;

 protected:
  /// Measures a probe's function (probes.h) with a toolchain.
  TuningRecord Probe(const Toolchain& toolchain, const std::string& probe);
  const MeasureContext& context() const { return options_.context; }
  /// Runs `work`, in which no measurement waits for the end of a pause.
  void WithoutPauses(const std::function<void()>& work);

 private:
  /// A measurement to make, and the key to store it under.
  struct Question {
    TuningKey key;
    std::string label;
    MeasureRequest request;
  };

  /// Returns the record of this run or of the database; null if there is none.
  const TuningRecord* Find(const TuningKey& key);
  double SmallestCall(const CostQuery& query);
  /// Returns a candidate's lower bound, even if it has been measured.
  double Bound(const CostQuery& query);
  /// As it is compiled so far.
  MeasureRequest RequestFor(const CostQuery& query) { return RequestFor(query, ScheduleOf(query)); }
  MeasureRequest RequestFor(const CostQuery& query, const std::string& schedule) const {
    return {options_.context, TimePartition{Requested(query, schedule)}};
  }
  RequestedPartition Requested(const CostQuery& query, const std::string& schedule) const;
  /// The schedule that is known to be best; empty where none was tried.
  std::string ScheduleOf(const CostQuery& query);
  PartitionKey PartitionOf(const CostQuery& query) const;
  static ConversionKey ConversionOf(const Shape& shape, DataType dtype, Layout from, Layout to);
  /// Returns the key of the partition as compiled by `schedule`.
  PartitionKey TrialOf(const CostQuery& query, const std::string& schedule) const;
  TuningKey Keyed(decltype(TuningKey::subject) subject) const;
  ResultKey ResultKeyed(decltype(ResultKey::subject) subject) const;
  /// Adds a record to what is known and to the database.
  void Remember(const TuningKey& key, const TuningRecord& record);
  /// Returns the known record of `key`, else the answer to `request`; skipped if there is none, or no time.
  TuningRecord Lookup(const TuningKey& key, const std::string& label, const std::optional<MeasureRequest>& request);
  TuningRecord Lookup(const TuningKey& key, const std::string& label, MeasureTask task) {
    return Lookup(key, label, MeasureRequest{options_.context, std::move(task)});
  }
  /// Sends `requests` to the runner; what it takes is spent of the budget.
  void Ask(const std::vector<MeasureRequest>& requests, const Runner::OnAnswer& on_answer);
  /// Measures as many as the budget allows and remembers the answers.
  void Measure(const std::vector<Question>& questions);
  bool MayMeasure() const;
  bool IsStopped() const;
  std::string VersionOf(const Toolchain& toolchain) const;
  ResultKey TieBreakKey(const std::vector<CostQuery>& rivals);
  /// Measures rivals in turn, up to a failure or until `may_go_on` says no, and returns a row per round; what was not
  /// measured is skipped.
  std::vector<std::vector<TuningRecord>> MeasureInTurn(const std::vector<MeasureRequest>& rivals,
                                                       const std::function<bool()>& may_go_on);
  std::vector<TuningRecord> WithoutFailed(const std::vector<CostQuery>& rivals,
                                          const std::vector<std::vector<TuningRecord>>& rounds);

  TuningDatabase& database_;
  std::unique_ptr<Runner> runner_;
  const CandidateSource& candidates_;
  Options options_;
  OnMeasure on_measure_;
  std::map<TuningKey, std::optional<TuningRecord>> known_;  ///< nothing: the database has none
  std::set<TuningKey> asked_;
  std::map<TuningKey, std::vector<TuningRecord>> trials_;  ///< by the partition's own key
  std::optional<MachineRates> rates_;
  bool are_rates_known_ = false;                  ///< whether there was time for all of them
  std::map<std::string, double> smallest_calls_;  ///< by toolchain, seconds
  std::map<std::string, bool> is_exact_;          ///< by toolchain
  std::optional<double> transition_seconds_;
  double spent_seconds_ = 0;
};

}  // namespace collage
