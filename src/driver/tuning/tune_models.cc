// tune_models.cc: the budgets of several models.
#include "driver/tuning/tune_models.h"

#include <algorithm>

namespace collage {
namespace {

/// The rest of the budgets of all models.
class Budgets {
 public:
  explicit Budgets(const CompileOptions& options) : all_(options), left_(options) {}

  /// The options of the next model, one of `models_left`.
  CompileOptions Share(int64_t models_left) const {
    constexpr double kNoTime = 1e-3;  // schedules that are known to be fastest are read, none is tried
    const auto share = [&](double left) { return left / static_cast<double>(models_left); };
    CompileOptions options = all_;
    options.budget_seconds = std::max(share(left_.budget_seconds), 0.0);
    if (all_.max_measurements) {
      options.max_measurements = std::max<int64_t>(*left_.max_measurements / models_left, 0);
    }
    if (all_.tuning_seconds > 0) options.tuning_seconds = std::max(share(left_.tuning_seconds), kNoTime);
    if (all_.tuning_trials > 0) options.tuning_trials = std::max<int64_t>(left_.tuning_trials / models_left, 1);
    return options;
  }

  void Spend(const CompileReport& report) {
    left_.budget_seconds -= report.search_seconds;
    left_.tuning_seconds -= report.tuning.seconds;
    left_.tuning_trials -= report.tuning.trials;
    if (left_.max_measurements) *left_.max_measurements -= report.num_measured + report.num_remeasured;
  }

 private:
  const CompileOptions& all_;
  CompileOptions left_;
};

}  // namespace

void ThrowFailure(const TunedModel& one) {
  if (one.failure) throw Error(*one.failure);
}

std::vector<TunedModel> TuneModels(
    const std::vector<std::filesystem::path>& models, const CompileOptions& options,
    const std::function<void(const std::filesystem::path&, const CompileOptions&)>& before) {
  Budgets budgets(options);
  std::vector<TunedModel> outcomes;
  for (size_t i = 0; i < models.size(); ++i) {
    if (i > 0 && options.should_stop && options.should_stop()) break;
    const CompileOptions own = budgets.Share(static_cast<int64_t>(models.size() - i));
    if (before) before(models[i], own);
    TunedModel outcome{models[i].string(), {}, std::nullopt};
    try {
      outcome.report = TuneModel(models[i], own);
    } catch (const Error& error) {
      outcome.failure = error;
    }
    budgets.Spend(outcome.report);
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace collage
