// tune.cc: `collage tune`: fills the tuning database ahead of compilations.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "collage/compile.h"
#include "command.h"
#include "compile_options.h"
#include "console_progress.h"
#include "driver/tuning/tune_models.h"
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

void Run(const Arguments& arguments) {
  CompileOptions options = OptionsFrom(arguments.settings);
  EndGently();
  options.should_stop = IsAskedToEnd;
  std::vector<TunedModel> outcomes;
  {
    ConsoleProgress progress(arguments.progress, std::numeric_limits<double>::infinity());
    options.progress = &progress;
    outcomes = TuneModels({arguments.models.begin(), arguments.models.end()}, options,
                          [&](const std::filesystem::path& model, const CompileOptions& own) {
                            progress.SetBudget(own.budget_seconds);
                            progress.Phase(model.string());
                          });
  }
  if (arguments.models.size() == 1) ThrowFailure(outcomes.at(0));
  PrintReport(TuneFacts(outcomes, IsAskedToEnd()), arguments.json);
  if (std::ranges::any_of(outcomes, [](const TunedModel& one) { return one.failure.has_value(); })) {
    throw CLI::RuntimeError(1);
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
