// analytic_estimator.cc: costs by a formula, at rates that a few probes of each toolchain show on this machine.
#include <map>
#include <optional>

#include "cost/estimator/analytic_model.h"
#include "cost/estimator/estimators.h"

namespace collage {
namespace {

/// Measures probes, rates and conversions of layouts, as the measuring one does, but no candidate. A search does not
/// pause while a toolchain is probed: costs without all of its probes would be others.
class AnalyticEstimator : public MeasuringEstimator {
 public:
  explicit AnalyticEstimator(EstimatorSetting setting)
      : MeasuringEstimator(setting.database, std::move(setting.runner), setting.candidates, std::move(setting.options),
                           std::move(setting.on_measure)),
        candidates_(setting.candidates) {}

  bool TriesSchedules() const override { return false; }
  bool KnowsWhatCompiles() const override { return false; }

  std::vector<TuningRecord> EstimateAll(const std::vector<CostQuery>& queries) override {
    std::vector<TuningRecord> records;
    for (const CostQuery& query : queries) {
      records.emplace_back();
      records.back().ok = true;
      records.back().minimum = records.back().p50 = LowerBound(query);
    }
    return records;
  }

  /// The estimates: that two are near says nothing of what was measured.
  std::vector<TuningRecord> BreakTies(const std::vector<CostQuery>& rivals) override { return EstimateAll(rivals); }

  /// The estimate itself: there is nothing to be found out.
  double LowerBound(const CostQuery& query) override {
    const auto [work, is_new] = works_.try_emplace(query.workload);
    if (is_new) work->second = WorkByKindOf(candidates_.Find(query.candidate).first.function);
    return ModelOf(query.toolchain).Seconds(work->second);
  }

  bool IsAtHand(const CostQuery&) override { return true; }

 private:
  const AnalyticModel& ModelOf(const Toolchain& toolchain) {
    const auto known = models_.find(toolchain.name());
    if (known != models_.end()) return known->second;
    const auto probe = [&](const std::string& name) -> std::optional<double> {
      const TuningRecord record = Probe(toolchain, name);
      return record.ok ? std::optional(CostOf(record)) : std::nullopt;
    };
    std::optional<AnalyticModel> model;
    WithoutPauses([&] { model.emplace(probe, Rates(), context().num_threads, context().timing.operands); });
    return models_.emplace(toolchain.name(), *model).first->second;
  }

  const CandidateSource& candidates_;
  std::map<std::string, WorkByKind> works_;  ///< by workload
  std::map<std::string, AnalyticModel> models_;
};

}  // namespace

std::unique_ptr<CostEstimator> MakeAnalyticEstimator(EstimatorSetting setting) {
  return std::make_unique<AnalyticEstimator>(std::move(setting));
}

}  // namespace collage
