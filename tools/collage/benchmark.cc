// benchmark.cc: `collage benchmark`: executables timed interleaved, one run of each in turn.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "collage/compile.h"
#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "command.h"
#include "cost/measure/timing.h"
#include "runtime/random_inputs.h"
#include "support/file.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::vector<std::string> executables;
  std::string model;
  std::vector<std::string> shapes;
  std::string toolchains;
  std::string seconds = "5";
  bool steps = false;
  bool json = false;
};

std::unique_ptr<ExecutionInstance> MakeInstance(const Executable& executable) {
  auto instance = std::make_unique<ExecutionInstance>(executable);
  uint64_t seed = 1;
  const std::vector<PortInfo> ports = executable.inputs();
  for (size_t i = 0; i < ports.size(); ++i) {
    const Tensor tensor = Tensor::Empty(ports[i].shape, ports[i].dtype);
    FillRandom(tensor, seed++);
    instance->SetInput(i, tensor);
  }
  return instance;
}

/// Median time of every step, with what it computes.
void PrintSteps(const Executable& executable, ExecutionInstance& instance) {
  constexpr int kRuns = 21;
  const ExecutionPlan& plan = executable.plan();
  std::vector<Samples> samples(plan.steps.size());
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<double> seconds = instance.RunTimed();
    for (size_t i = 0; i < seconds.size(); ++i) samples[i].Add(seconds[i]);
  }
  Table table({"step", "p50", "estimated", "toolchain", "operators"});
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const ExecutionPlan::Step& step = plan.steps[i];
    if (step.kernel < 0) {
      const bool converts = step.kind == ExecutionPlan::Step::kConvertLayout;
      table.Add({std::to_string(i), FormatSeconds(samples[i].p50()), "", "host", converts ? "change layout" : "copy"});
      continue;
    }
    const ExecutionPlan::KernelEntry& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
    table.Add({std::to_string(i), FormatSeconds(samples[i].p50()), FormatSeconds(kernel.estimated_seconds),
               kernel.toolchain, kernel.label.substr(0, 100)});
  }
  fmt::print("{}", table.ToText());
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
    CompileOptions options;
    options.shapes = ParseShapeArguments(arguments.shapes);
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

void Run(const Arguments& arguments) {
  std::vector<Contender> contenders;
  for (const std::string& path : arguments.executables) contenders.push_back({path, path});
  const TemporaryFolder folder;
  if (!arguments.model.empty()) {
    const int num_threads = Executable::Load(contenders.front().file).plan().num_threads;
    for (Contender& contender : CompileAlone(arguments, num_threads, folder))
      contenders.push_back(std::move(contender));
  }
  std::vector<Executable> executables;
  std::vector<std::unique_ptr<ExecutionInstance>> instances;
  std::vector<std::function<void()>> runs;
  for (const Contender& contender : contenders) {
    executables.push_back(Executable::Load(contender.file));
    instances.push_back(MakeInstance(executables.back()));
    runs.emplace_back([instance = instances.back().get()] { instance->Run(); });
  }
  TimeInterleaved(runs, 3);
  double round = 0;
  for (const Samples& sample : TimeInterleaved(runs, 3)) round += sample.p50();
  const bool settle = round / static_cast<double>(runs.size()) < kSettleBelowSeconds;
  const double round_seconds = std::max(settle ? 2 * round : round, 1e-7);
  const int rounds = std::clamp(static_cast<int>(ParseDuration(arguments.seconds) / round_seconds), 11, 100'000);
  const std::vector<Samples> samples = TimeInterleaved(runs, rounds, settle);
  Json json{{"schema", 1}, {"executables", Json::array()}};
  Table table({"executable", "p50", "p90", "p99", "min", "runs/s", "to first"});
  for (size_t i = 0; i < samples.size(); ++i) {
    const Samples& s = samples[i];
    json["executables"].push_back({{"name", contenders[i].name},
                                   {"threads", executables[i].plan().num_threads},
                                   {"p50_seconds", s.p50()},
                                   {"p90_seconds", s.p90()},
                                   {"p99_seconds", s.p99()},
                                   {"min_seconds", s.minimum()},
                                   {"runs", s.size()},
                                   {"per_second", 1 / s.p50()}});
    table.Add({contenders[i].name, FormatSeconds(s.p50()), FormatSeconds(s.p90()), FormatSeconds(s.p99()),
               FormatSeconds(s.minimum()), fmt::format("{:.1f}", 1 / s.p50()),
               fmt::format("{:.3f}", s.p50() / samples[0].p50())});
  }
  if (arguments.json) return PrintJson(json);
  fmt::print("{} rounds, interleaved, inputs resident\n{}", rounds, table.ToText());
  if (!arguments.steps) return;
  for (size_t i = 0; i < executables.size(); ++i) PrintSteps(executables[i], *instances[i]);
}

}  // namespace

void AddBenchmarkCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("benchmark", "Time executables, run in turns");
  command->add_option("executables", arguments->executables, "Executables (.clg)")->required();
  command->add_option("--model", arguments->model, "ONNX model: also time every toolchain alone on it");
  command->add_option("--shape", arguments->shapes, "Shape of a dynamic input of the model, NAME=1x3x640x640");
  command->add_option("--toolchains", arguments->toolchains,
                      "With --model: only these toolchains, separated by commas (default: all)");
  command->add_option("--seconds", arguments->seconds, "Approximate time to run, in seconds (default: 5)");
  command->add_flag("--steps", arguments->steps, "Also print the time of every step");
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
