// estimator.h: what a partition costs, asked lazily by the search (RFC 0.81, Appendix E).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "collage/target/toolchain.h"
#include "cost/measure.h"
#include "cost/roofline.h"
#include "cost/tuning_database.h"
#include "cost/worker.h"

namespace collage {

/// A partition to be estimated: what, by whom, and a number under which it can be found again.
struct CostQuery {
  const std::string& workload;  ///< digest of its structure, constants by shape
  const BoundaryLayouts& layouts;
  const Work& work;
  const Toolchain& toolchain;
  /// Given back to `FindPartition` in the worker, which shares this process's memory as it was when it was forked.
  int64_t job;
  std::string label;  ///< operators, for people
};

/// The estimating interface. `Estimate` is allowed to take long; the answer is a record, with a reason when not ok.
class CostEstimator {
 public:
  virtual ~CostEstimator() = default;
  virtual TuningRecord Estimate(const CostQuery& query) = 0;
  /// Seconds that `Estimate` would not go below; infinity for what is known to fail. Quick.
  virtual double LowerBound(const CostQuery&) { return 0; }
  /// Seconds to change the layout of a value of logical `shape`.
  virtual double ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) = 0;
};

/// What the measuring estimator did.
struct EstimatorCounts {
  int64_t measured = 0;
  int64_t from_database = 0;
  int64_t failed = 0;
  int64_t skipped = 0;      ///< not measured because the budget was spent
  int64_t below_bound = 0;  ///< that took less than their bound
};

/// Database first, then the worker; every answer is committed before it is returned.
class MeasuringEstimator : public CostEstimator {
 public:
  struct Options {
    int num_threads = 1;
    std::string machine;  ///< hardware fingerprint
    WorkerLimits limits;
    TimingOptions timing;
    double budget_seconds = 0;                    ///< for measuring; 0 = no limit
    int64_t max_measurements = 0;                 ///< 0 = no limit
    std::function<bool()> should_stop;            ///< asked before each measurement; may be empty
    std::map<std::string, std::string> versions;  ///< of toolchains, part of the keys
  };
  /// Finds a job's partition and toolchain again; called in the worker.
  using FindPartition = std::function<std::pair<PartitionRequest, const Toolchain*>(int64_t job)>;
  /// Told before each measurement.
  using OnMeasure = std::function<void(const EstimatorCounts&, const std::string& label)>;

  MeasuringEstimator(TuningDatabase& database, FindPartition find, Options options, OnMeasure on_measure);

  TuningRecord Estimate(const CostQuery& query) override;
  /// What the database knows, else the toolchain's smallest call and the roofline.
  double LowerBound(const CostQuery& query) override;
  double ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) override;

  /// Seconds that measuring may take in all; 0 = no limit.
  void SetBudget(double seconds) { options_.budget_seconds = seconds; }
  const EstimatorCounts& counts() const { return counts_; }
  bool budget_spent() const { return counts_.skipped > 0; }
  /// Text of failures by kind with count and one example.
  const std::map<std::string, std::pair<int64_t, std::string>>& failures() const { return failures_; }

  TuningKey KeyOf(const CostQuery& query) const;

 private:
  /// What this run or the database knows; null for nothing.
  const TuningRecord* Find(const TuningKey& key);
  const MachineRates& Rates();
  double SmallestCall(const CostQuery& query);
  TuningRecord Lookup(const TuningKey& key, const std::string& label, const std::string& worker_request);
  std::string Answer(const std::string& request);
  bool MayMeasure() const;

  TuningDatabase& database_;
  FindPartition find_;
  Options options_;
  OnMeasure on_measure_;
  Worker worker_;
  std::map<TuningKey, std::optional<TuningRecord>> known_;  ///< nothing: the database has none
  std::set<TuningKey> asked_;
  std::optional<MachineRates> rates_;
  std::map<std::string, double> smallest_calls_;  ///< by toolchain, seconds
  EstimatorCounts counts_;
  double spent_seconds_ = 0;
  std::map<std::string, std::pair<int64_t, std::string>> failures_;
};

/// "pc:c": the layouts of inputs and of outputs, one letter each.
std::string LayoutsText(const BoundaryLayouts& layouts);

}  // namespace collage
