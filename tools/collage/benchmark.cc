// benchmark.cc: `collage benchmark`: executables timed interleaved, one run of each in turn.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "collage/compile.h"
#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "command.h"
#include "compile_options.h"
#include "cost/measure/timing.h"
#include "decode.h"
#include "runtime/random_inputs.h"
#include "support/file.h"

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
  bool json = false;
};

/// Something to be timed: an executable, with random inputs at hand.
struct Subject {
  std::string name;
  int num_threads = 1;
  std::function<void()> run;
  std::function<Fact()> steps;  ///< median times of its steps; empty for programs, which have none
};

/// Median time of every step, with what it computes.
Fact StepsFacts(const std::string& name, const ExecutionPlan& plan, ExecutionInstance& instance) {
  constexpr int kRuns = 21;
  std::vector<Samples> samples(plan.steps.size());
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<double> seconds = instance.RunTimed();
    for (size_t i = 0; i < seconds.size(); ++i) samples[i].Add(seconds[i]);
  }
  std::vector<Fact> rows;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const ExecutionPlan::Step& step = plan.steps[i];
    const ExecutionPlan::KernelEntry* kernel =
        step.kernel < 0 ? nullptr : &plan.kernels[static_cast<size_t>(step.kernel)];
    const char* of_host = step.kind == ExecutionPlan::Step::kConvertLayout ? "change layout" : "copy";
    rows.push_back(Fact::Record(
        "", "",
        {Fact::Integer("step", "step", static_cast<int64_t>(i)), Fact::Seconds("p50_seconds", "p50", samples[i].p50()),
         Fact::Seconds("estimated_seconds", "estimated",
                       kernel == nullptr ? std::nullopt : std::optional(kernel->estimated_seconds)),
         Fact::Text("toolchain", "toolchain", kernel == nullptr ? "host" : kernel->toolchain),
         Fact::Text("operators", "operators", kernel == nullptr ? of_host : kernel->label)}));
  }
  Fact steps = Fact::Table("steps", "steps", std::move(rows))
                   .Columns({{"step", "{step}"},
                             {"p50", "{p50_seconds}"},
                             {"estimated", "[{estimated_seconds}]"},
                             {"toolchain", "{toolchain}"},
                             {"operators", "{operators:100}"}});
  return Fact::Record("", "", {Fact::Text("name", "executable", name), std::move(steps)}).Says("{name}");
}

Subject PlanOf(const std::string& name, const std::filesystem::path& file) {
  const Executable executable = Executable::Load(file);
  const auto instance = std::make_shared<ExecutionInstance>(executable);
  uint64_t seed = 1;
  const std::vector<PortInfo> ports = executable.inputs();
  for (size_t i = 0; i < ports.size(); ++i) {
    const Tensor tensor = Tensor::Empty(ports[i].shape, ports[i].dtype);
    FillRandom(tensor, seed++);
    instance->SetInput(i, tensor);
  }
  return {name, executable.plan().num_threads, [instance] { instance->Run(); },
          [=] { return StepsFacts(name, executable.plan(), *instance); }};
}

/// Shapes and sizes at which programs run.
struct RunSizes {
  std::map<std::string, Shape> shapes;  ///< by input
  std::map<std::string, Shape> dims;    ///< by dimension: one size each

  bool empty() const { return shapes.empty() && dims.empty(); }
};

/// The shape of parameter `index` of a program. Throws kInput where a size of it is not given.
Shape ShapeOf(const vm::Executable& program, size_t index, const Var& param, const RunSizes& sizes,
              const std::string& file) {
  const TensorTypeNode* type = AsTensorType(param->type_annotation());
  if (type == nullptr) {
    throw Error(ErrorCategory::kInput, fmt::format("input '{}' is no tensor", param->name()), file,
                "only programs of tensors are timed");
  }
  const auto given = sizes.shapes.find(param->name());
  if (given != sizes.shapes.end() && std::ranges::none_of(given->second, [](int64_t size) { return size < 0; })) {
    return given->second;
  }
  const NamedDimensions dimensions = program.Dimensions("main");
  Shape shape;
  for (const Dim& dim : type->shape()) {
    if (!dim.is_any()) {
      shape.push_back(dim.size());
      continue;
    }
    const std::string name = dimensions.NameOf(index, shape.size());
    const auto size = sizes.dims.find(name);
    if (size == sizes.dims.end()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("input '{}' is of dynamic shape, {}", param->name(), ToString(param->type_annotation())),
                  file, fmt::format("say at which size to run: --dim {}=<size>", name));
    }
    shape.push_back(size->second.front());
  }
  return shape;
}

/// Random tensors for @main of a program.
std::vector<Value> InputsOf(const vm::Executable& program, const RunSizes& sizes, const std::string& file) {
  std::vector<Value> inputs;
  const std::vector<Var> params = program.Parameters("main");
  for (size_t i = 0; i < params.size(); ++i) {
    const Shape shape = ShapeOf(program, i, params[i], sizes, file);
    const Tensor tensor = Tensor::Empty(shape, AsTensorType(params[i]->type_annotation())->dtype());
    FillRandom(tensor, i + 1);
    inputs.emplace_back(tensor);
  }
  return inputs;
}

Subject ProgramOf(const std::string& name, const std::filesystem::path& file, const RunSizes& sizes) {
  const vm::Executable executable = vm::Executable::Load(file);
  const auto machine = std::make_shared<vm::Machine>(executable);
  return {name, executable.num_threads(),
          [machine, inputs = InputsOf(executable, sizes, file.string())] { machine->Invoke("main", inputs); }, nullptr};
}

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
  const CompileOptions options = OptionsFrom(arguments.settings);
  const RunSizes sizes{options.shapes, options.dims};
  for (const auto& [name, range] : sizes.dims) {
    if (range.front() == range.back()) continue;
    throw Error(ErrorCategory::kInput, fmt::format("dimension '{}' has a range; a run has one size", name), "--dim");
  }
  std::vector<Subject> subjects;
  bool has_program = false;
  for (const std::string& file : arguments.executables) {
    const bool is_program = vm::Executable::IsBytecode(file);
    has_program = has_program || is_program;
    subjects.push_back(is_program ? ProgramOf(file, file, sizes) : PlanOf(file, file));
  }
  if (!sizes.empty() && !has_program && arguments.model.empty()) {
    throw Error(ErrorCategory::kInput, "no executable has inputs of dynamic shapes, and there is no model",
                "--shape, --dim");
  }
  if (arguments.model.empty()) return subjects;
  const TemporaryFolder folder;
  for (const Contender& contender : CompileAlone(arguments, subjects.front().num_threads, folder)) {
    subjects.push_back(PlanOf(contender.name, contender.file));
  }
  return subjects;
}

void RunDecoders(const Arguments& arguments) {
  const bool has_sizes =
      !OptionsFrom(arguments.settings).shapes.empty() || !OptionsFrom(arguments.settings).dims.empty();
  if (has_sizes || !arguments.model.empty() || arguments.steps) {
    throw Error(ErrorCategory::kInput, "--decode times executables whose sizes the prompt decides", "",
                "leave out --model, --steps, --shape and --dim");
  }
  DecodeArguments of{arguments.executables, arguments.decode};
  if (arguments.prompt) of.prompt = *arguments.prompt;
  PrintReport(DecodeFacts(of), arguments.json);
}

void Run(const Arguments& arguments) {
  if (arguments.decode > 0) return RunDecoders(arguments);
  if (arguments.prompt) throw Error(ErrorCategory::kInput, "only decoders have a prompt", "--prompt", "give --decode");
  const std::vector<Subject> subjects = SubjectsOf(arguments);
  std::vector<std::function<void()>> runs;
  for (const Subject& subject : subjects) {
    if (arguments.steps && !subject.steps) {
      throw Error(ErrorCategory::kInput, "a program has no fixed steps to time", subject.name, "leave out --steps");
    }
    runs.push_back(subject.run);
  }
  TimeInterleaved(runs, 3);
  double round = 0;
  for (const Samples& sample : TimeInterleaved(runs, 3)) round += sample.p50();
  const bool settle = round / static_cast<double>(runs.size()) < kSettleBelowSeconds;
  const double round_seconds = std::max(settle ? 2 * round : round, 1e-7);
  const int rounds = std::clamp(static_cast<int>(ParseDuration(arguments.seconds) / round_seconds), 11, 100'000);
  const std::vector<Samples> samples = TimeInterleaved(runs, rounds, settle);
  std::vector<Fact> rows;
  std::vector<Fact> steps;
  for (size_t i = 0; i < samples.size(); ++i) {
    rows.push_back(TimesRow(subjects[i].name, subjects[i].num_threads, samples[i], samples[0].p50()));
    if (arguments.steps) steps.push_back(subjects[i].steps());
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
  if (arguments.steps) facts.push_back(Fact::Table("steps", "", std::move(steps)));
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
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
