// run.cc: `collage run`: one inference with given, stored or random inputs; one call of a Relay program.
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <optional>

#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "command.h"
#include "run_program.h"
#include "runtime/compare.h"
#include "runtime/npy.h"
#include "runtime/random_inputs.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string executable;
  std::string inputs;
  std::vector<std::string> input_files;
  std::string outputs;
  std::string expected;
  std::optional<double> relative;
  std::optional<double> absolute;
  bool random = false;
  bool json = false;
  std::string function = "main";
  bool interpret = false;
  bool disassemble = false;
};

/// Arrays of an .npz by port name; "in.X" stands for X too, as reference files hold inputs and outputs together.
Tensor FindArray(const std::map<std::string, Tensor>& arrays, const std::string& prefix, const std::string& name) {
  for (const std::string& key : {name, prefix + name}) {
    auto it = arrays.find(key);
    if (it != arrays.end()) return it->second;
  }
  return {};
}

std::vector<Tensor> GatherInputs(const Executable& executable, const Arguments& arguments) {
  std::map<std::string, Tensor> arrays;
  if (!arguments.inputs.empty()) arrays = ReadNpz(arguments.inputs);
  for (const std::string& text : arguments.input_files) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCategory::kInput, fmt::format("malformed input '{}'", text), "--input", "write NAME=FILE.npy");
    }
    arrays[text.substr(0, equals)] = ReadArray(text.substr(equals + 1));
  }
  std::vector<Tensor> inputs;
  uint64_t seed = 1;
  for (const PortInfo& port : executable.inputs()) {
    Tensor tensor = FindArray(arrays, "in.", port.name);
    if (!tensor.defined() && arguments.random) {
      tensor = Tensor::Empty(port.shape, port.dtype);
      FillRandom(tensor, seed++);
    }
    if (!tensor.defined()) {
      throw Error(
          ErrorCategory::kInput,
          fmt::format("no value for input '{}' ({} {})", port.name, port.dtype.ToString(), ToString(port.shape)), "",
          "give --inputs FILE.npz, --input NAME=FILE.npy or --random");
    }
    inputs.push_back(tensor);
  }
  return inputs;
}

/// What --compare allows: 1e-4 + 1e-3 relative, of 16-bit floats what their precision gives, or as it is asked for.
Tolerance ChooseTolerance(const Arguments& arguments, const Tensor& expected) {
  const bool is_half = expected.dtype().is_floating() && expected.dtype().bits == 16;
  Tolerance tolerance = is_half ? ToleranceFor(expected) : Tolerance{1e-3, 1e-4};
  if (arguments.relative) tolerance.relative = *arguments.relative;
  if (arguments.absolute) tolerance.absolute = *arguments.absolute;
  return tolerance;
}

/// True when all outputs agree.
bool CompareOutputs(const Arguments& arguments, const std::vector<PortInfo>& ports, const std::vector<Tensor>& outputs,
                    Json* json) {
  const std::map<std::string, Tensor> arrays = ReadNpz(arguments.expected);
  bool all = true;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Tensor expected = FindArray(arrays, "out.", ports[i].name);
    if (!expected.defined()) {
      throw Error(ErrorCategory::kInput, fmt::format("no array for output '{}'", ports[i].name), arguments.expected);
    }
    const Tolerance tolerance = ChooseTolerance(arguments, expected);
    const Comparison comparison = Compare(outputs[i], expected, tolerance);
    all = all && comparison.agrees;
    (*json)["outputs"].push_back({{"name", ports[i].name},
                                  {"agrees", comparison.agrees},
                                  {"max_absolute_error", comparison.max_absolute_error},
                                  {"difference", comparison.difference}});
    if (!arguments.json) {
      fmt::print("output '{}' {} the expected one: max absolute error {:.2e} (tolerance {:g} + {:g} relative){}\n",
                 ports[i].name, comparison.agrees ? "agrees with" : "DIFFERS from", comparison.max_absolute_error,
                 tolerance.absolute, tolerance.relative, comparison.agrees ? "" : ": " + comparison.difference);
    }
  }
  return all;
}

/// Runs a program, which has parameters and values where an executable has ports and tensors.
void RunProgramFile(const Arguments& arguments) {
  if (!arguments.expected.empty()) {
    throw Error(ErrorCategory::kInput, "--compare is for executables without control flow", arguments.executable,
                "write the result with --outputs");
  }
  ProgramArguments program;
  program.file = arguments.executable;
  program.function = arguments.function;
  program.inputs = arguments.inputs;
  program.values = arguments.input_files;
  program.outputs = arguments.outputs;
  program.random = arguments.random;
  program.interpret = arguments.interpret;
  program.disassemble = arguments.disassemble;
  program.json = arguments.json;
  IsRelayText(program.file) ? RunProgram(program) : RunBytecode(program);
}

void Run(const Arguments& arguments) {
  if (IsRelayText(arguments.executable) || vm::Executable::IsBytecode(arguments.executable)) {
    return RunProgramFile(arguments);
  }
  if (arguments.function != "main" || arguments.interpret || arguments.disassemble) {
    throw Error(ErrorCategory::kInput, "--function, --interpret and --disassemble are for programs",
                arguments.executable, "`collage info` shows what an executable does");
  }
  const Executable executable = Executable::Load(arguments.executable);
  ExecutionInstance instance(executable);
  const std::vector<Tensor> inputs = GatherInputs(executable, arguments);
  for (size_t i = 0; i < inputs.size(); ++i) instance.SetInput(i, inputs[i]);
  const auto started = std::chrono::steady_clock::now();
  instance.Run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  std::vector<Tensor> outputs;
  std::map<std::string, Tensor> arrays;
  const std::vector<PortInfo> ports = executable.outputs();
  for (size_t i = 0; i < ports.size(); ++i) {
    outputs.push_back(instance.Output(i));
    arrays[ports[i].name] = outputs.back();
  }
  if (!arguments.outputs.empty()) WriteNpz(arguments.outputs, arrays);
  Json json{{"schema", 1}, {"first_run_seconds", seconds}, {"outputs", Json::array()}};
  bool agrees = true;
  if (!arguments.expected.empty()) {
    agrees = CompareOutputs(arguments, ports, outputs, &json);
  } else if (!arguments.json) {
    for (const PortInfo& port : ports) {
      fmt::print("output '{}' {} {}\n", port.name, port.dtype.ToString(), ToString(port.shape));
    }
  }
  if (arguments.json) PrintJson(json);
  if (!agrees) throw CLI::RuntimeError(1);
}

}  // namespace

void AddRunCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("run", "Run an executable, or a Relay program, once");
  command->add_option("executable", arguments->executable, "Executable (.clg), or Relay text (.relay)")->required();
  command->add_option("--inputs", arguments->inputs, "Inputs by name (.npz)");
  command->add_option("--input", arguments->input_files,
                      "One input, NAME=FILE.npy or NAME=FILE.pb; may be repeated. Of Relay text also NAME=NUMBER or "
                      "NAME=EXPRESSION");
  command->add_flag("--random", arguments->random, "Random values for inputs that are not given");
  command->add_option("--outputs", arguments->outputs, "Where to write the outputs (.npz)");
  command->add_option("--compare", arguments->expected, "Expected outputs (.npz); exit code 1 when they differ");
  command->add_option("--rtol", arguments->relative,
                      "Relative tolerance of --compare (default: 1e-3, more for 16-bit floats)");
  command->add_option("--atol", arguments->absolute,
                      "Absolute tolerance of --compare (default: 1e-4, more for 16-bit floats)");
  command->add_option("--function", arguments->function, "Of a program: the global function to call")
      ->capture_default_str();
  command->add_flag("--interpret", arguments->interpret,
                    "Of Relay text: by the reference interpreter, not as bytecode");
  command->add_flag("--disassemble", arguments->disassemble, "Of a program: print its bytecode and do not run it");
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
