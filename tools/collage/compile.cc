// compile.cc: `collage compile`: the main job, its progress and its report.
#include "collage/compile.h"

#include <fmt/format.h>

#include "collage/settings.h"
#include "collage/support/error.h"
#include "command.h"
#include "compile_options.h"
#include "console_progress.h"
#include "report/compile_facts.h"
#include "report/json.h"
#include "support/interruption.h"

namespace collage::cli {
namespace {

struct Arguments {
  SettingTexts settings;
  std::string model;
  std::string output;
  bool prints_settings = false;
  bool json = false;
  bool details = false;
  bool quiet = false;
};

void Run(const Arguments& arguments) {
  CompileOptions options = OptionsFrom(arguments.settings);
  if (arguments.prints_settings) {
    return PrintReport(Fact::Report(1, {FactOfJson("settings", "", SettingsJson(options))}), /*as_json=*/true);
  }
  if (arguments.model.empty())
    throw Error(ErrorCategory::kInput, "no model is given", "", "collage compile MODEL.onnx");
  options.output = arguments.output;
  if (options.output.empty()) options.output = std::filesystem::path(arguments.model).stem().string() + ".clg";
  CompileReport report;
  {
    ConsoleProgress progress(arguments.quiet, options.budget_seconds);
    options.progress = &progress;
    EndGently();
    options.should_stop = IsAskedToEnd;
    report = CompileModel(arguments.model, options);
  }
  PrintReport(CompileFacts(report), arguments.json, {.details = arguments.details});
}

void AddReportFlags(CLI::App& command, Arguments& arguments) {
  command.add_flag("--json", arguments.json, "Print the report as JSON");
  command.add_flag("--details", arguments.details, "Print also the facts that only --json has otherwise");
  command.add_flag("--quiet", arguments.quiet, "No progress");
}

}  // namespace

void AddCompileCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("compile", "Find the fastest mix of toolchains for a model and write it");
  command->add_option("model", arguments->model, "ONNX model, or Relay text (.relay)");
  command->add_option("-o,--output", arguments->output, "Executable to write (default: MODEL.clg)");
  command->add_flag("--print-settings", arguments->prints_settings, "Print the settings as JSON; compile nothing");
  AddReportFlags(*command, *arguments);
  AddSettings(*command, SettingCommands::kCompile, arguments->settings);
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
