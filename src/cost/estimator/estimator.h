// estimator.h: what a partition costs, asked lazily by the search (RFC 0.81, Appendix E).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collage/target/toolchain.h"
#include "cost/database/tuning_database.h"
#include "cost/machine/roofline.h"
#include "cost/runner/candidate_source.h"
#include "target/annotations.h"

namespace collage {

/// A partition to be estimated: what, by whom, and a handle by which it can be found again.
struct CostQuery {
  const std::string& workload;  ///< digest of its structure, constants by shape
  const BoundaryLayouts& layouts;
  const Work& work;
  const Toolchain& toolchain;
  CandidateHandle candidate;
  std::string label;   ///< operators, for people
  std::string target;  ///< PartitionSpec::name
};

/// Counts of an estimator's work.
struct EstimatorCounts {
  int64_t measured = 0;
  int64_t remeasured = 0;  ///< again, to tell rivals apart
  int64_t from_database = 0;
  int64_t failed = 0;
  int64_t skipped = 0;      ///< not measured because the budget was spent
  int64_t below_bound = 0;  ///< kernels that took less than their bound
  int64_t trials = 0;       ///< trials of schedules
  int64_t known_trials = 0;
};

/// The estimating interface. `Estimate` is allowed to take long; the answer is a record, with a reason when not ok.
class CostEstimator {
 public:
  virtual ~CostEstimator() = default;

  virtual TuningRecord Estimate(const CostQuery& query) = 0;
  /// Whether `Estimate` answers at once, as the tuning database does.
  virtual bool IsAtHand(const CostQuery&) { return false; }
  /// Whether a cost that it knows says that the partition was compiled. Estimates do not.
  virtual bool KnowsWhatCompiles() const { return false; }
  /// Whether there is time to find out what is not at hand; else `Estimate` skips it.
  virtual bool FindsOut() const { return true; }
  /// How many partitions are estimated in about the time of one.
  virtual int NumAtOnce() const { return 1; }
  /// Estimates several partitions at once, in their order.
  virtual std::vector<TuningRecord> EstimateAll(const std::vector<CostQuery>& queries);
  /// Estimates again partitions whose costs differ by less than noise. Partitions that stay statistically tied cost the
  /// same from then on, so that priority decides. In the order of `rivals`, which have estimates.
  virtual std::vector<TuningRecord> BreakTies(const std::vector<CostQuery>& rivals) { return EstimateAll(rivals); }
  // Schedules (Toolchain::Schedules): only who measures tries any.
  virtual bool TriesSchedules() const { return false; }
  /// Schedules one step from `schedule`, most promising first.
  virtual std::vector<std::string> SchedulesNear(const CostQuery&, const std::string& /*schedule*/) { return {}; }
  /// Returns the cost of `query` with each of `schedules`, in their order. `may_go_on` is asked before each unknown
  /// one; after a no, the rest is skipped.
  virtual std::vector<TuningRecord> TrySchedules(const CostQuery&, const std::vector<std::string>& /*schedules*/,
                                                 const std::function<bool()>& /*may_go_on*/) {
    return {};
  }
  /// The schedules of `query` that were tried so far: a record for each, with its schedule.
  virtual std::vector<TuningRecord> TrialsOf(const CostQuery&) { return {}; }
  /// Measures `query` in turn as it is compiled so far and by `schedule`. If that is faster, it is what `query` is
  /// compiled by, and what it costs, from then on. In any case the answer is what it costs now.
  virtual TuningRecord AdoptIfFaster(const CostQuery& query, const std::string& /*schedule*/) {
    return Estimate(query);
  }

  /// Seconds that `Estimate` would not go below; infinity for what is known to fail. Quick.
  virtual double LowerBound(const CostQuery&) { return 0; }
  /// Seconds that no schedule of `query` would go below: at most what it costs now. Quick.
  virtual double LeastOfSchedules(const CostQuery& query) { return LowerBound(query); }
  /// The cost that a record which is ok stands for, seconds.
  virtual double CostOf(const TuningRecord& record) const { return record.p50; }
  /// Seconds to change the layout of a value of logical `shape`.
  virtual double ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) = 0;
  /// Whether `ConvertSeconds` answers at once, without a measurement.
  virtual bool IsConversionAtHand(const Shape&, DataType, Layout /*from*/, Layout /*to*/) { return true; }

  /// Seconds for one more partition, beyond what it takes.
  virtual double TransitionSeconds() { return 0; }
  /// Seconds that a partition of `to` takes longer when one of `from`, another toolchain, ran just before it.
  virtual double SwitchSeconds(const Toolchain& /*from*/, const Toolchain& /*to*/) { return 0; }

  /// How fast this machine is at most, as far as that is known. Quick once it has been asked.
  virtual MachineRates Rates() { return {}; }

  /// Share by which two estimates of one partition may differ: smaller differences are not worth finding out.
  virtual double Noise() const { return 0; }
  /// Whether equal partitions may differ in cost, by where they are in the graph.
  virtual bool TellsPlacesApart() const { return false; }
  /// When a search is over: throws kUnavailable when its answers were not what they should be.
  virtual void CheckComplete() const {}

  /// Seconds that measuring may take in all; 0 = no limit.
  virtual void SetBudget(double) {}
  /// Ends processes that wait for questions; the next question starts them again.
  virtual void Rest() {}

  const EstimatorCounts& counts() const { return counts_; }
  /// From now on there is time for what was skipped.
  virtual void ForgetSkipped() { counts_.skipped = 0; }
  /// Notes that `query` cannot be run.
  void CountFailure(const CostQuery& query, const std::string& reason);
  /// Failures by kind, with how often and one example.
  const std::map<std::string, std::pair<int64_t, std::string>>& failures() const { return failures_; }

 protected:
  EstimatorCounts counts_;

 private:
  std::map<std::string, std::pair<int64_t, std::string>> failures_;
};

/// To change the layout of a value, where nothing was measured: dearer than on any machine.
double SlowConversionSeconds(const Shape& shape, DataType dtype);

}  // namespace collage
