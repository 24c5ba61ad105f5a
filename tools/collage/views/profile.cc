// profile.cc: `collage profile`: where the time of an executable's runs goes.
#include "collage/profile.h"

#include <array>
#include <memory>

#include "collage/support/error.h"
#include "command.h"
#include "compile_options.h"
#include "report/profile_facts.h"
#include "run/run_inputs.h"
#include "support/file.h"
#include "viewers/chrome_trace.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string executable;
  std::string inputs;
  std::vector<std::string> input_files;
  SettingTexts settings;  ///< sizes of dynamic inputs
  std::string seconds = "3";
  std::string order = "time";
  int top = 20;
  bool no_counters = false;
  bool no_cold = false;
  bool no_roof = false;
  std::string trace;
  bool json = false;
};

void Run(const Arguments& arguments) {
  if (!arguments.trace.empty()) CheckCanWrite(arguments.trace);
  RunInputs inputs = SizesFrom(arguments.settings);
  AddArrays(arguments.executable, arguments.inputs, arguments.input_files, inputs);
  ProfileOptions options;
  options.seconds = ParseDuration(arguments.seconds);
  options.counts = !arguments.no_counters;
  options.evicts = !arguments.no_cold;
  options.finds_roof = !arguments.no_roof;
  const Profile profile = ProfileFile(arguments.executable, inputs, options);
  if (!arguments.trace.empty()) WriteWhole(arguments.trace, ChromeTrace(std::array{profile}));
  StepOrder order;  // of JSON: that of a run, whose steps others refer to by number
  if (!arguments.json) order = {arguments.order == "time", static_cast<size_t>(arguments.top)};
  PrintReport(ProfileFacts(profile, order), arguments.json);
}

}  // namespace

void AddProfileCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "profile", "Time every partition inside of real runs, with memory, counters and the machine's limits beside it");
  command->add_option("executable", arguments->executable, "Executable (.clg)")->required();
  command->add_option("--inputs", arguments->inputs, "File with inputs by name (.npz); others are random");
  command->add_option("--input", arguments->input_files, "One input, NAME=FILE.npy; may be repeated");
  AddSetting(*command, "shapes", arguments->settings, "For programs.");
  AddSetting(*command, "dims", arguments->settings, "For programs: one size each.");
  command->add_option("--seconds", arguments->seconds, "Approximate time to run")->capture_default_str();
  command->add_option("--order", arguments->order, "Order of the steps in text: by time, or as they run")
      ->check(CLI::IsMember({"time", "run"}))
      ->capture_default_str();
  command->add_option("--top", arguments->top, "Steps in text; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--no-counters", arguments->no_counters, "Do not read counters of the processor and the system");
  command->add_flag("--no-cold", arguments->no_cold, "No runs with evicted caches");
  command->add_flag("--no-roof", arguments->no_roof, "Do not measure what the machine can do at most");
  command->add_option("--trace", arguments->trace,
                      "Also write a run as a Chrome trace (.json), for ui.perfetto.dev or chrome://tracing");
  AddRequiredSignature(*command);
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  collage profile model.clg --trace run.json           the longest steps, and a run for Perfetto");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
