// tune_models.h: fills the tuning database ahead of compilations, for several models in one budget.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/support/error.h"

namespace collage {

/// How tuning for one model went.
struct TunedModel {
  std::string model;
  CompileReport report;
  std::optional<Error> failure;  ///< empty: it succeeded
};

/// Throws the model's failure if it has one.
void ThrowFailure(const TunedModel& one);

/// Tunes the models one after the other.
///
/// Each gets an equal share of the budgets of time and trials that are left, so that whatever one does not need goes to
/// those after it. A model that fails does not keep the others from being tuned. `options.should_stop` is asked before
/// each model, too: models that it leaves out are not in the result. `before` is called with each model and its
/// options.
std::vector<TunedModel> TuneModels(
    const std::vector<std::filesystem::path>& models, const CompileOptions& options,
    const std::function<void(const std::filesystem::path&, const CompileOptions&)>& before = {});

}  // namespace collage
