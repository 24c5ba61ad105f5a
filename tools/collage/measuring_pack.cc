// measuring_pack.cc: `collage pack`: compiles the candidates of models for a machine that measures them, or contenders
// for a play-off there; `collage measure`: measures them there.
#include "collage/measuring_pack.h"

#include <limits>

#include "collage/support/error.h"
#include "command.h"
#include "compile_options.h"
#include "console_progress.h"
#include "report/pack_facts.h"
#include "support/interruption.h"

namespace collage::cli {
namespace {

struct PackArguments {
  SettingTexts settings;
  std::vector<std::string> models;
  std::string output;
  std::string machine;
  int schedules = 0;
  bool json = false;
  ProgressArguments progress;
};

// Settings of `compile` and `tune` that a pack depends on.
constexpr const char* kSettings[] = {"shapes",           "dims",          "constants",     "tune_at",
                                     "threads",          "toolchains",    "target",        "accuracy",
                                     "opt_level",        "required_pass", "disabled_pass", "config",
                                     "partition_rules",  "percentile",    "operands",      "candidate_timeout",
                                     "candidate_memory", "database",      "search",        "estimator"};

void RunPack(const PackArguments& arguments) {
  CompileOptions options = OptionsFrom(arguments.settings);
  options.machine = arguments.machine;
  PackReport report;
  {
    ConsoleProgress progress(arguments.progress, std::numeric_limits<double>::infinity());
    options.progress = &progress;
    report =
        PackModels({arguments.models.begin(), arguments.models.end()}, options, arguments.schedules, arguments.output);
  }
  PrintReport(PackFacts(report), arguments.json);
}

struct MeasureArguments {
  SettingTexts settings;
  std::string pack;
  std::string name;
  std::string seconds;
  bool json = false;
  ProgressArguments progress;
};

double SecondsFrom(const std::string& text) {
  if (text.empty()) return std::numeric_limits<double>::infinity();
  try {
    return ParseDuration(text);
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), "--seconds", error.hint());
  }
}

void RunMeasure(const MeasureArguments& arguments) {
  const CompileOptions common = OptionsFrom(arguments.settings);
  MeasurePackOptions options;
  options.database = common.database;
  options.name = arguments.name;
  options.seconds = SecondsFrom(arguments.seconds);
  options.candidate_timeout_seconds = common.candidate_timeout_seconds;
  options.candidate_memory_bytes = common.candidate_memory_bytes;
  EndGently();
  options.should_stop = IsAskedToEnd;
  MeasurePackReport report;
  {
    ConsoleProgress progress(arguments.progress, options.seconds);
    options.progress = &progress;
    report = MeasurePack(arguments.pack, options);
  }
  PrintReport(MeasureFacts(report), arguments.json);
}

}  // namespace

void AddPackCommand(CLI::App& app) {
  constexpr int kMostSchedules = 1000;
  auto arguments = std::make_shared<PackArguments>();
  CLI::App* command = app.add_subcommand(
      "pack", "Compile all candidates of models into a file, for `collage measure` on another machine; run nothing");
  command->add_option("models", arguments->models, "ONNX models, or Relay text (.relay)")->required();
  command->add_option("-o,--output", arguments->output, "Measuring pack to write")->required();
  command
      ->add_option("--schedules", arguments->schedules,
                   "Compile also up to N schedules near each toolchain's own choice, for each candidate")
      ->type_name("N")
      ->check(CLI::Range(0, kMostSchedules))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print the report as JSON");
  AddProgressFlags(*command, arguments->progress);
  command
      ->add_option("--machine", arguments->machine,
                   "Pack the covers that meet in the play-off of a compilation for this machine, by its costs in the "
                   "database, in place of candidates")
      ->type_name("NAME");
  for (const char* name : kSettings) AddSetting(*command, name, arguments->settings);
  command->footer(
      "Examples:\n"
      "  collage pack model.onnx -o model.pack --schedules 2    all candidates, compiled for this kind of machine");
  command->callback([arguments] { RunPack(*arguments); });
}

void AddMeasureCommand(CLI::App& app) {
  auto arguments = std::make_shared<MeasureArguments>();
  CLI::App* command =
      app.add_subcommand("measure", "Measure the candidates of a pack on this machine; resumes where it stopped");
  command->add_option("pack", arguments->pack, "Measuring pack, written by `collage pack`")->required();
  command
      ->add_option("--seconds", arguments->seconds,
                   "Stop after this time, such as 90s or 25m; what is measured is kept (default: when all is known)")
      ->type_name("TIME");
  command
      ->add_option("--name", arguments->name,
                   "By which `collage compile --machine` calls this machine (default: its kind)")
      ->type_name("NAME");
  command->add_flag("--json", arguments->json, "Print the report as JSON");
  AddProgressFlags(*command, arguments->progress);
  for (const char* name : {"database", "candidate_timeout", "candidate_memory"}) {
    AddSetting(*command, name, arguments->settings);
  }
  command->footer(
      "Examples:\n"
      "  collage measure model.pack --seconds 10s    on the machine that the model will run on");
  command->callback([arguments] { RunMeasure(*arguments); });
}

}  // namespace collage::cli
