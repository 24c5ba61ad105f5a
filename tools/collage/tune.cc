// tune.cc: `collage tune`: fills the tuning database ahead of compilations.
#include <fmt/format.h>

#include <chrono>
#include <limits>

#include "collage/compile.h"
#include "collage/support/error.h"
#include "command.h"
#include "compile_options.h"
#include "console_progress.h"
#include "report/compile_facts.h"
#include "support/interruption.h"

namespace collage::cli {
namespace {

struct Arguments {
  SettingTexts settings;
  std::vector<std::string> models;
  bool json = false;
  ProgressArguments progress;
};

/// Gives each model an equal share of what is left, so that what one does not need goes to those after it.
void Run(const Arguments& arguments) {
  CompileOptions options = OptionsFrom(arguments.settings);
  EndGently();
  options.should_stop = IsAskedToEnd;
  double seconds_left = options.budget_seconds;
  const bool counts_trials = options.max_measurements.has_value();
  int64_t trials_left = options.max_measurements.value_or(0);
  double tuning_left = options.tuning_seconds;
  int64_t tuning_trials_left = options.tuning_trials;
  std::vector<TunedModel> outcomes;
  {
    ConsoleProgress progress(arguments.progress, std::numeric_limits<double>::infinity());
    options.progress = &progress;
    for (size_t i = 0; i < arguments.models.size() && !IsAskedToEnd(); ++i) {
      const auto models_left = static_cast<int64_t>(arguments.models.size() - i);
      options.budget_seconds = std::max(seconds_left / static_cast<double>(models_left), 0.0);
      if (counts_trials) options.max_measurements = std::max<int64_t>(trials_left / models_left, 0);
      constexpr double kNoTime = 1e-3;  // schedules that are known to be fastest are read, none is tried
      if (options.tuning_seconds > 0) {
        options.tuning_seconds = std::max(tuning_left / static_cast<double>(models_left), kNoTime);
      }
      if (options.tuning_trials > 0) options.tuning_trials = std::max<int64_t>(tuning_trials_left / models_left, 1);
      progress.SetBudget(options.budget_seconds);
      progress.Phase(arguments.models[i]);
      TunedModel outcome{arguments.models[i], {}, ""};
      try {
        outcome.report = TuneModel(arguments.models[i], options);
      } catch (const Error& error) {
        if (arguments.models.size() == 1) throw;
        outcome.failure = error.message();
      }
      seconds_left -= outcome.report.search_seconds;
      tuning_left -= outcome.report.tuning.seconds;
      tuning_trials_left -= outcome.report.tuning.trials;
      trials_left -= outcome.report.num_measured + outcome.report.num_remeasured;
      outcomes.push_back(std::move(outcome));
    }
  }
  PrintReport(TuneFacts(outcomes, IsAskedToEnd()), arguments.json);
  for (const TunedModel& outcome : outcomes) {
    if (!outcome.failure.empty()) throw CLI::RuntimeError(1);
  }
}

}  // namespace

void AddTuneCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "tune", "Measure ahead the costs that compiling these models will need; resumes where it stopped");
  command->add_option("models", arguments->models, "ONNX models")->required();
  command->add_flag("--json", arguments->json, "Print the report as JSON");
  AddProgressFlags(*command, arguments->progress);
  AddSettings(*command, SettingCommands::kCompileAndTune, arguments->settings);
  command->footer(
      "Examples:\n"
      "  collage tune model.onnx --budget 10m    what is known afterwards, `collage compile` need not measure");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
