// run.cc: `collage run`: one inference with given, stored or random inputs; one call of a Relay program.
#include <fmt/format.h>

#include <chrono>

#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "command.h"
#include "compile_options.h"
#include "run_inputs.h"
#include "run_program.h"
#include "run_values.h"
#include "runtime/npy.h"
#include "runtime/plan/file_kind.h"
#include "runtime/random_inputs.h"
#include "support/file.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string executable;
  std::string inputs;
  std::vector<std::string> input_files;
  std::string outputs;
  ComparisonArguments comparison;
  bool random = false;
  SettingTexts sizes;
  bool json = false;
  std::string function = "main";
  bool interpret = false;
  bool disassemble = false;
};

RunNames NamesOf(const Executable& executable) {
  RunNames names;
  for (const PortInfo& port : executable.inputs()) names.inputs.push_back(port.name);
  for (const PortInfo& port : executable.outputs()) names.outputs.push_back(port.name);
  return names;
}

std::vector<Tensor> GatherInputs(const Executable& executable, const RunNames& names, const Arguments& arguments) {
  StringNumbers strings;
  StoredArrays given;
  if (!arguments.inputs.empty()) given = ReadInputs(arguments.inputs, names, strings);
  for (const std::string& text : arguments.input_files) {
    const auto [name, file] = SplitInput(text, names, "write NAME=FILE.npy");
    given[name] = ReadArray(file, strings);
  }
  for (const auto& [name, array] : given) CheckIsText(name, array, false);
  std::vector<Tensor> inputs;
  uint64_t seed = 1;
  for (const PortInfo& port : executable.inputs()) {
    Tensor tensor = given[port.name].tensor;
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

/// Runs a program, which has parameters and values where an executable has ports and tensors.
void RunProgramFile(const Arguments& arguments) {
  ProgramArguments program;
  program.file = arguments.executable;
  program.function = arguments.function;
  program.inputs = arguments.inputs;
  program.values = arguments.input_files;
  program.outputs = arguments.outputs;
  program.comparison = arguments.comparison;
  program.random = arguments.random;
  program.sizes = SizesFrom(arguments.sizes);
  program.interpret = arguments.interpret;
  program.disassemble = arguments.disassemble;
  program.json = arguments.json;
  const bool agrees = IsRelayText(program.file) ? RunProgram(program) : RunBytecode(program);
  if (!agrees) throw CLI::RuntimeError(1);
}

void Run(const Arguments& arguments) {
  if (!arguments.outputs.empty()) CheckCanWrite(arguments.outputs);
  if (IsRelayText(arguments.executable) || vm::Executable::IsBytecode(arguments.executable)) {
    return RunProgramFile(arguments);
  }
  if (arguments.function != "main" || arguments.interpret || arguments.disassemble) {
    throw Error(ErrorCategory::kInput, "--function, --interpret and --disassemble are for programs",
                arguments.executable, "`collage info` shows what an executable does");
  }
  const RunInputs sizes = SizesFrom(arguments.sizes);
  if (!sizes.shapes.empty() || !sizes.sizes.empty()) {
    throw Error(ErrorCategory::kInput, "all sizes of its inputs are known: --shape and --dim give those of others",
                arguments.executable, "leave them out");
  }
  const Executable executable = Executable::Load(arguments.executable);
  ExecutionInstance instance(executable);
  const RunNames names = NamesOf(executable);
  CheckOutputsFile(arguments.outputs, names);
  const std::vector<Tensor> inputs = GatherInputs(executable, names, arguments);
  for (size_t i = 0; i < inputs.size(); ++i) instance.SetInput(i, inputs[i]);
  const auto started = std::chrono::steady_clock::now();
  instance.Run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  Outputs outputs{names.outputs, {}};
  for (size_t i = 0; i < names.outputs.size(); ++i) outputs.values.push_back({instance.Output(i)});
  StringNumbers strings;
  if (!arguments.outputs.empty()) WriteOutputs(arguments.outputs, outputs, strings);
  Fact table = OutputsTable(outputs);
  const bool agrees =
      arguments.comparison.expected.empty() || CompareOutputs(arguments.comparison, outputs, strings, table);
  PrintReport(Fact::Report(1, {Fact::Seconds("first_run_seconds", "first run", seconds).Detail(), std::move(table)}),
              arguments.json);
  if (!agrees) throw CLI::RuntimeError(1);
}

}  // namespace

void AddRunCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("run", "Run an executable, or a Relay program, once");
  command->add_option("executable", arguments->executable, "Executable (.clg), or Relay text (.relay)")->required();
  command->add_option("--inputs", arguments->inputs, "File with inputs by name (.npz)");
  command->add_option(
      "--input", arguments->input_files,
      "One input, NAME=FILE.npy or NAME=FILE.pb; for Relay text also NAME=NUMBER or NAME=EXPRESSION; may be "
      "repeated");
  command->add_flag("--random", arguments->random, "Use random values for inputs that are not given");
  AddSetting(*command, "shapes", arguments->sizes, "With --random.");
  AddSetting(*command, "dims", arguments->sizes, "With --random: one size each.");
  AddRequiredSignature(*command);
  command->add_option("--outputs", arguments->outputs, "File to write outputs to (.npz; .npy for a single output)");
  command->add_option("--compare", arguments->comparison.expected,
                      "Compare with expected outputs (.npz); exit code 1 if they differ");
  command->add_option("--rtol", arguments->comparison.relative,
                      "Relative tolerance of --compare (default: 1e-3, more for 16-bit floats)");
  command->add_option("--atol", arguments->comparison.absolute,
                      "Absolute tolerance of --compare (default: 1e-4, more for 16-bit floats)");
  command->add_option("--function", arguments->function, "For programs: global function to call")
      ->capture_default_str();
  command->add_flag("--interpret", arguments->interpret,
                    "For Relay text: use the reference interpreter instead of bytecode");
  command->add_flag("--disassemble", arguments->disassemble, "For programs: print the bytecode instead of running it");
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  collage run model.clg --random\n"
      "  collage run any_length.clg --random --dim sequence=16\n"
      "  collage run model.clg --inputs in.npz --outputs out.npz\n"
      "  collage run model.clg --inputs in.npz --compare out.npz     exit code 1 if results differ");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
