// database_estimator.cc: costs from the tuning database and nothing else, so that a compilation is quick and its choice
// the same wherever that database is.
#include <fmt/format.h>

#include <set>

#include "collage/support/error.h"
#include "cost/estimator/estimators.h"

namespace collage {
namespace {

/// As measuring, but never has the time to: what is not in the database counts as its bound, so that the search goes on
/// to all that it would want, and is told of when the search is over.
class DatabaseEstimator : public MeasuringEstimator {
 public:
  using MeasuringEstimator::MeasuringEstimator;

  std::vector<TuningRecord> EstimateAll(const std::vector<CostQuery>& queries) override {
    std::vector<TuningRecord> records = MeasuringEstimator::EstimateAll(queries);
    for (size_t i = 0; i < queries.size(); ++i) {
      const CostQuery& query = queries[i];
      if (!records[i].is_skipped) continue;
      Miss(query.workload + LayoutsText(query.layouts) + query.toolchain.name(),
           fmt::format("{}: {} [{}]", query.toolchain.name(), query.label, LayoutsText(query.layouts)));
      records[i] = {};
      records[i].ok = true;
      records[i].minimum = records[i].p50 = LowerBound(query);
    }
    counts_.skipped = 0;
    return records;
  }

  bool TriesSchedules() const override { return false; }

  double LowerBound(const CostQuery& query) override {
    const double bound = MeasuringEstimator::LowerBound(query);
    counts_.skipped = 0;  // without the machine's rates bounds are lower, no more
    return bound;
  }

  double ConvertSeconds(const Shape& shape, DataType dtype, Layout from, Layout to) override {
    counts_.skipped = 0;
    const double seconds = MeasuringEstimator::ConvertSeconds(shape, dtype, from, to);
    MissIfSkipped([&] {
      return fmt::format("host: conversion of {} {} [{}:{}]", ToString(shape), dtype.ToString(), ToString(from),
                         ToString(to));
    });
    return seconds;
  }

  double TransitionSeconds() override {
    counts_.skipped = 0;
    const double seconds = MeasuringEstimator::TransitionSeconds();
    MissIfSkipped([] { return "host: one more partition"; });
    return seconds;
  }

  double SwitchSeconds(const Toolchain& from, const Toolchain& to) override {
    counts_.skipped = 0;
    const double seconds = MeasuringEstimator::SwitchSeconds(from, to);
    MissIfSkipped([&] { return fmt::format("{}: switch from {}", to.name(), from.name()); });
    return seconds;
  }

  void CheckComplete() const override {
    if (missing_.empty()) return;
    constexpr size_t kShown = 10;
    std::string text;
    for (size_t i = 0; i < std::min(missing_.size(), kShown); ++i) text += (i == 0 ? "" : "; ") + missing_[i];
    if (missing_.size() > kShown) text += fmt::format("; and {} more", missing_.size() - kShown);
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("{} cost{} not in the tuning database: {}", missing_.size(),
                            missing_.size() == 1 ? " is" : "s are", text),
                "", "run `collage tune` with the same options first");
  }

 private:
  /// Looks up costs other than partitions, whose description is their key.
  template <typename Describe>
  void MissIfSkipped(const Describe& describe) {
    const std::string what = counts_.skipped > 0 ? describe() : "";
    if (!what.empty()) Miss(what, what);
    counts_.skipped = 0;
  }

  void Miss(const std::string& key, std::string what) {
    if (seen_.insert(key).second) missing_.push_back(std::move(what));
  }

  std::set<std::string> seen_;
  std::vector<std::string> missing_;  ///< in the order in which they were asked for
};

}  // namespace

std::unique_ptr<CostEstimator> MakeDatabaseEstimator(EstimatorSetting setting) {
  setting.options.should_stop = [] { return true; };
  return std::make_unique<DatabaseEstimator>(setting.database, std::move(setting.runner), setting.candidates,
                                             std::move(setting.options), std::move(setting.on_measure));
}

}  // namespace collage
