// benchmark.cc: `collage benchmark`: executables timed interleaved, one run of each in turn.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "collage/compile.h"
#include "collage/profile.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "command.h"
#include "compile_options.h"
#include "cost/measure/timing.h"
#include "decode.h"
#include "profile/profile_subject.h"
#include "report/profile_facts.h"
#include "run/run_inputs.h"
#include "support/file.h"
#include "viewers/chrome_trace.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::vector<std::string> executables;
  std::string model;
  SettingTexts settings;  ///< of the model
  std::string toolchains;
  std::string seconds = "5";
  int decode = 0;
  std::optional<int> prompt;
  bool steps = false;
  std::string trace;
  bool json = false;
};

/// Something to be timed: an executable, with random inputs at hand.
struct Subject {
  std::string name;
  std::unique_ptr<RunSubject> run;
};

struct Contender {
  std::string name;
  std::filesystem::path file;
};

/// The model compiled for each toolchain alone, with as many threads as the first executable uses.
std::vector<Contender> CompileAlone(const Arguments& arguments, int num_threads, const TemporaryFolder& folder) {
  std::vector<Contender> contenders;
  const std::vector<std::string> wanted = SplitCommas(arguments.toolchains);
  for (const ToolchainReport& toolchain : ProbeToolchains()) {
    const bool is_wanted = wanted.empty() || std::find(wanted.begin(), wanted.end(), toolchain.name) != wanted.end();
    if (!toolchain.available || !is_wanted) continue;
    CompileOptions options = OptionsFrom(arguments.settings);
    options.num_threads = num_threads;
    options.partition_for = toolchain.name;
    options.output = folder.path() / (toolchain.name + ".clg");
    options.database = (folder.path() / "tuning.db").string();
    try {
      CompileModel(arguments.model, options);
    } catch (const Error& error) {
      if (error.category() != ErrorCategory::kUnsupported) throw;
      fmt::print(stderr, "collage: {} alone is left out: {}\n", toolchain.name, error.what());
      continue;
    }
    contenders.push_back({toolchain.name + " alone", options.output});
  }
  return contenders;
}

Fact StepsRow(const Profile& profile) {
  return Fact::Record("", "", {Fact::Text("name", "executable", profile.executable), StepsFact(profile)})
      .Says("{name}");
}

Fact TimesRow(const std::string& name, int num_threads, const Samples& samples, double first) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "executable", name), Fact::Count("threads", "threads", num_threads).Detail(),
       Fact::Seconds("p50_seconds", "p50", samples.p50()), Fact::Seconds("p90_seconds", "p90", samples.p90()),
       Fact::Seconds("p99_seconds", "p99", samples.p99()), Fact::Seconds("min_seconds", "min", samples.minimum()),
       Fact::Count("runs", "runs", static_cast<int64_t>(samples.size())).Detail(),
       Fact::Number("per_second", "runs/s", 1 / samples.p50(), Unit::kPerSecond),
       Fact::Number("to_first", "to first", samples.p50() / first, Unit::kFineRatio)});
}

/// The executables of the command line, and the model for each toolchain alone if that is wanted.
std::vector<Subject> SubjectsOf(const Arguments& arguments) {
  const RunInputs inputs = SizesFrom(arguments.settings);
  std::vector<Subject> subjects;
  bool has_program = false;
  for (const std::string& file : arguments.executables) {
    has_program = has_program || vm::Executable::IsBytecode(file);
    subjects.push_back({file, LoadSubject(file, inputs)});
  }
  if (!arguments.settings.empty() && !has_program && arguments.model.empty()) {
    throw Error(ErrorCategory::kInput, "no executable has inputs of dynamic shapes, and there is no model",
                "--shape, --dim");
  }
  if (arguments.model.empty()) return subjects;
  const TemporaryFolder folder;
  for (const Contender& contender : CompileAlone(arguments, subjects.front().run->num_threads(), folder)) {
    subjects.push_back({contender.name, LoadSubject(contender.file, {})});
  }
  return subjects;
}

/// Profiles of all subjects, as far as --steps and --trace show them.
std::vector<Profile> ProfilesOf(const std::vector<Subject>& subjects) {
  std::vector<Profile> profiles;
  for (const Subject& subject : subjects) {
    profiles.push_back(
        ProfileSubject(*subject.run, {.seconds = 1, .counts = false, .evicts = false, .finds_roof = false}));
    profiles.back().executable = subject.name;
  }
  return profiles;
}

void RunDecoders(const Arguments& arguments) {
  if (!arguments.settings.empty() || !arguments.model.empty() || arguments.steps || !arguments.trace.empty()) {
    throw Error(ErrorCategory::kInput, "--decode times executables whose sizes the prompt decides", "",
                "leave out --model, --steps, --trace, --shape and --dim");
  }
  DecodeArguments of{arguments.executables, arguments.decode};
  if (arguments.prompt) of.prompt = *arguments.prompt;
  PrintReport(DecodeFacts(of), arguments.json);
}

void Run(const Arguments& arguments) {
  if (arguments.decode > 0) return RunDecoders(arguments);
  if (arguments.prompt) throw Error(ErrorCategory::kInput, "only decoders have a prompt", "--prompt", "give --decode");
  if (!arguments.trace.empty()) CheckCanWrite(arguments.trace);
  const std::vector<Subject> subjects = SubjectsOf(arguments);
  std::vector<std::function<void()>> runs;
  for (const Subject& subject : subjects) runs.emplace_back([run = subject.run.get()] { run->Run(); });
  TimeInterleaved(runs, 3);
  double round = 0;
  for (const Samples& sample : TimeInterleaved(runs, 3)) round += sample.p50();
  const bool settle = round / static_cast<double>(runs.size()) < kSettleBelowSeconds;
  const double round_seconds = std::max(settle ? 2 * round : round, 1e-7);
  const int rounds = std::clamp(static_cast<int>(ParseDuration(arguments.seconds) / round_seconds), 11, 100'000);
  const std::vector<Samples> samples = TimeInterleaved(runs, rounds, settle);
  std::vector<Fact> rows;
  for (size_t i = 0; i < samples.size(); ++i) {
    rows.push_back(TimesRow(subjects[i].name, subjects[i].run->num_threads(), samples[i], samples[0].p50()));
  }
  std::vector<Fact> facts{
      Fact::Line("", {Fact::Count("rounds", "rounds", rounds)}).Says("{rounds} rounds, interleaved, inputs resident"),
      Fact::Table("executables", "executables", std::move(rows))
          .Columns({{"executable", "{name}"},
                    {"p50", "{p50_seconds}"},
                    {"p90", "{p90_seconds}"},
                    {"p99", "{p99_seconds}"},
                    {"min", "{min_seconds}"},
                    {"runs/s", "{per_second}"},
                    {"to first", "{to_first}"}})};
  if (arguments.steps || !arguments.trace.empty()) {
    const std::vector<Profile> profiles = ProfilesOf(subjects);
    if (!arguments.trace.empty()) WriteWhole(arguments.trace, ChromeTrace(profiles));
    if (arguments.steps) facts.push_back(TableOf("steps", "", profiles, StepsRow));
  }
  PrintReport(Fact::Report(1, std::move(facts)), arguments.json);
}

}  // namespace

void AddBenchmarkCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("benchmark", "Time executables, run in turns");
  command->add_option("executables", arguments->executables, "Executables (.clg)")->required();
  command->add_option("--model", arguments->model, "ONNX model: also time every toolchain alone on it");
  AddSetting(*command, "shapes", arguments->settings, "With --model, and for programs.");
  AddSetting(*command, "dims", arguments->settings, "With --model, and for programs: one size each.");
  command->add_option("--toolchains", arguments->toolchains,
                      "With --model: only these toolchains, separated by commas (default: all)");
  command->add_option("--seconds", arguments->seconds, "Approximate time to run, in seconds (default: 5)");
  command
      ->add_option("--decode", arguments->decode,
                   "Programs are decoders: run a prompt, and then so many tokens one by one")
      ->check(CLI::PositiveNumber);
  command->add_option("--prompt", arguments->prompt, "With --decode: tokens of the prompt (default: 128)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--steps", arguments->steps, "Also print the time of every step");
  command->add_option("--trace", arguments->trace,
                      "Also write a run of each as a Chrome trace (.json), for ui.perfetto.dev or chrome://tracing");
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  collage benchmark a.clg b.clg --steps --trace both.json    the time of every partition of both, and runs for "
      "Perfetto\n"
      "  collage benchmark model.clg --model model.onnx             beside every toolchain alone");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
