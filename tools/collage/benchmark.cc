// benchmark.cc: `collage benchmark`: executables timed interleaved, one run of each in turn.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "collage/compile.h"
#include "collage/profile.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "command.h"
#include "compile_options.h"
#include "console_progress.h"
#include "cost/measure/timing.h"
#include "decode.h"
#include "doctor/machine.h"
#include "profile/process_memory.h"
#include "profile/profile_subject.h"
#include "report/profile_facts.h"
#include "run/run_inputs.h"
#include "support/file.h"
#include "support/stopwatch.h"
#include "viewers/chrome_trace.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::vector<std::string> executables;
  std::string model;
  SettingTexts settings;  ///< shapes of the model
  std::string toolchains;
  std::string inputs;
  std::vector<std::string> input_files;
  std::string seconds = "5";
  int iterations = 0;  ///< 0: as many as `seconds` allow
  int warmup = 3;
  int decode = 0;
  std::optional<int> prompt;
  bool steps = false;
  std::string trace;
  bool json = false;
};

/// Something to be timed: an executable with its inputs at hand.
struct Subject {
  std::string name;
  std::unique_ptr<RunSubject> run;
  double load_seconds = 0;
  double first_run_seconds = 0;
  std::optional<int64_t> bytes;  ///< memory that the process took for it, until its first run was done
};

Subject Load(const std::string& name, const std::filesystem::path& file, const RunInputs& inputs) {
  const std::optional<int64_t> before = ResidentBytes();
  Subject subject{name, nullptr};
  subject.load_seconds = SecondsOf([&] { subject.run = LoadSubject(file, inputs); });
  subject.first_run_seconds = SecondsOf([&] { subject.run->Run(); });
  const std::optional<int64_t> after = ResidentBytes();
  if (before && after) subject.bytes = std::max<int64_t>(*after - *before, 0);
  return subject;
}

struct Contender {
  std::string name;
  std::filesystem::path file;
};

/// The model compiled for each toolchain alone, with as many threads as the first executable uses.
std::vector<Contender> CompileAlone(const Arguments& arguments, int num_threads, const TemporaryFolder& folder) {
  std::vector<Contender> contenders;
  const std::vector<std::string> wanted = SplitCommas(arguments.toolchains);
  ConsoleProgress progress({.quiet = arguments.json}, std::numeric_limits<double>::infinity());
  for (const ToolchainReport& toolchain : ProbeToolchains()) {
    const bool is_wanted = wanted.empty() || std::find(wanted.begin(), wanted.end(), toolchain.name) != wanted.end();
    if (!toolchain.available || !is_wanted) continue;
    CompileOptions options = OptionsFrom(arguments.settings);
    options.num_threads = num_threads;
    options.partition_for = toolchain.name;
    progress.Step(fmt::format("compile for {} alone", toolchain.name));
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

Fact TimesRow(const Subject& subject, const Samples& samples, double first) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "executable", subject.name),
       Fact::Count("threads", "threads", subject.run->num_threads()).Detail(),
       Fact::Seconds("p50_seconds", "p50", samples.p50()), Fact::Seconds("p90_seconds", "p90", samples.p90()),
       Fact::Seconds("p99_seconds", "p99", samples.p99()), Fact::Seconds("min_seconds", "min", samples.minimum()),
       Fact::Count("runs", "runs", static_cast<int64_t>(samples.size())).Detail(),
       Fact::Number("per_second", "runs/s", 1 / samples.p50(), Unit::kPerSecond),
       Fact::Number("to_first", "to first", samples.p50() / first, Unit::kFineRatio),
       Fact::Seconds("load_seconds", "load", subject.load_seconds),
       Fact::Seconds("first_run_seconds", "first run", subject.first_run_seconds),
       Fact::Integer("memory_bytes", "memory", subject.bytes, Unit::kBytes)});
}

/// The executables of the command line, and the model for each toolchain alone if that is wanted.
std::vector<Subject> SubjectsOf(const Arguments& arguments) {
  std::vector<Subject> subjects;
  bool has_program = false;
  for (const std::string& file : arguments.executables) {
    has_program = has_program || vm::Executable::IsBytecode(file);
    RunInputs inputs = SizesFrom(arguments.settings);
    AddArrays(file, arguments.inputs, arguments.input_files, inputs);
    subjects.push_back(Load(file, file, inputs));
  }
  if (!arguments.settings.empty() && !has_program && arguments.model.empty()) {
    throw Error(ErrorCategory::kInput, "no executable has inputs of dynamic shapes, and there is no model",
                "--shape, --dim");
  }
  if (arguments.model.empty()) return subjects;
  const TemporaryFolder folder;
  for (const Contender& contender : CompileAlone(arguments, subjects.front().run->num_threads(), folder)) {
    RunInputs inputs;
    AddArrays(contender.file, arguments.inputs, arguments.input_files, inputs);
    subjects.push_back(Load(contender.name, contender.file, inputs));
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

/// As many rounds as are asked for, or as fit in the time; `settle`: whether a run goes before each.
int RoundsOf(const Arguments& arguments, double round_seconds, bool settle) {
  if (arguments.iterations > 0) return arguments.iterations;
  const double seconds = std::max(settle ? 2 * round_seconds : round_seconds, 1e-7);
  return std::clamp(static_cast<int>(ParseDuration(arguments.seconds) / seconds), 11, 100'000);
}

/// Says what makes the times doubtful: a busy machine before, runs that vary after.
void WarnOf(const std::string& busy, const std::vector<Samples>& samples) {
  constexpr double kVaries = 1.5;
  if (!busy.empty()) fmt::print(stderr, "collage: warning: {}\n", busy);
  const auto varies = [](const Samples& one) { return one.p90() > kVaries * one.p50(); };
  if (std::ranges::any_of(samples, varies)) {
    fmt::print(stderr,
               "collage: warning: one run in ten took more than {} times the median: something else uses the "
               "machine (`collage doctor`)\n",
               kVaries);
  }
}

void Run(const Arguments& arguments) {
  if (arguments.decode > 0) return RunDecoders(arguments);
  if (arguments.prompt) throw Error(ErrorCategory::kInput, "only decoders have a prompt", "--prompt", "give --decode");
  if (!arguments.trace.empty()) CheckCanWrite(arguments.trace);
  const std::string busy = BusyWarning();
  const std::vector<Subject> subjects = SubjectsOf(arguments);
  std::vector<std::function<void()>> runs;
  for (const Subject& subject : subjects) runs.emplace_back([run = subject.run.get()] { run->Run(); });
  if (arguments.warmup > 0) TimeInterleaved(runs, arguments.warmup);
  double round = 0;
  for (const Samples& sample : TimeInterleaved(runs, 3)) round += sample.p50();
  const bool settle = round / static_cast<double>(runs.size()) < kSettleBelowSeconds;
  const int rounds = RoundsOf(arguments, round, settle);
  const std::vector<Samples> samples = TimeInterleaved(runs, rounds, settle);
  WarnOf(busy, samples);
  std::vector<Fact> rows;
  for (size_t i = 0; i < samples.size(); ++i) rows.push_back(TimesRow(subjects[i], samples[i], samples[0].p50()));
  std::vector<Fact> facts{
      Fact::Line("", {Fact::Count("rounds", "rounds", rounds)}).Says("{rounds} rounds, interleaved, inputs resident"),
      Fact::Table("executables", "executables", std::move(rows))
          .Columns({{"executable", "{name}"},
                    {"p50", "{p50_seconds}"},
                    {"p90", "{p90_seconds}"},
                    {"p99", "{p99_seconds}"},
                    {"min", "{min_seconds}"},
                    {"runs/s", "{per_second}"},
                    {"to first", "{to_first}"},
                    {"load", "{load_seconds}"},
                    {"first run", "{first_run_seconds}"},
                    {"memory", "[{memory_bytes}]"}})};
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
  command->add_option("--inputs", arguments->inputs, "File with inputs by name (.npz); others are random");
  command->add_option("--input", arguments->input_files, "One input, NAME=FILE.npy; may be repeated");
  command->add_option("--iterations", arguments->iterations, "Time so many runs of each (default: as --seconds allows)")
      ->check(CLI::PositiveNumber);
  command->add_option("--warmup", arguments->warmup, "Runs of each before")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--decode", arguments->decode,
                   "Programs are decoders: run a prompt, and then so many tokens one by one")
      ->check(CLI::PositiveNumber);
  command->add_option("--prompt", arguments->prompt, "With --decode: tokens of the prompt (default: 128)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--steps", arguments->steps, "Also print the time of every step");
  command->add_option("--trace", arguments->trace,
                      "Also write a run of each as a Chrome trace (.json), for ui.perfetto.dev or chrome://tracing");
  AddRequiredSignature(*command)->excludes("--model");  // whose executables are made here
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  collage benchmark a.clg b.clg --steps --trace both.json    the time of every partition of both, and runs for "
      "Perfetto\n"
      "  collage benchmark model.clg --model model.onnx             beside every toolchain alone");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
