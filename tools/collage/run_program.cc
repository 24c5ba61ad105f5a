// run_program.cc: `collage run` for Relay text. Inputs that are expressions become functions without parameters behind
// the program's text, so that they may use its constructors and functions.
#include "run_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "command.h"
#include "ir/interpreter.h"
#include "runtime/npy.h"
#include "runtime/random_inputs.h"
#include "support/edit_distance.h"
#include "support/file.h"

namespace collage::cli {
namespace {

/// What is given for one parameter: a tensor, or the name of the function that computes it.
struct Given {
  Tensor tensor;
  std::string function;
};

Function FindFunction(const IRModule& module, const ProgramArguments& arguments) {
  if (module.Has(arguments.function)) return module.Lookup(arguments.function);
  std::vector<std::string> names;
  for (const auto& [name, function] : module.functions()) names.push_back(name);
  const std::vector<std::string> near = NearMisses(arguments.function, names);
  throw Error(ErrorCategory::kInput, fmt::format("there is no function '@{}'", arguments.function), arguments.file,
              near.empty() ? "" : "did you mean '@" + near[0] + "'?");
}

/// A scalar of the parameter's type; nothing when the text is no number or the parameter no scalar.
std::optional<Tensor> ScalarOf(const std::string& text, const Type& type) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr || tensor->rank() != 0 || tensor->dtype().is_vector()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || (!tensor->dtype().is_floating() && value != std::floor(value))) {
    return std::nullopt;
  }
  return MakeScalar(value, tensor->dtype())->value();
}

/// The program's text with `definitions` behind it, before its metadata.
std::string WithDefinitions(const std::string& text, const std::string& definitions) {
  const size_t metadata = text.rfind("#[metadata]");
  const size_t end = metadata == std::string::npos ? text.size() : metadata;
  return text.substr(0, end) + "\n" + definitions + text.substr(end);
}

/// Runs functions of one module, by either engine.
class Program {
 public:
  Program(const std::string& text, const ProgramArguments& arguments)
      : module_(ParseModule(text, arguments.file)), function_(FindFunction(module_, arguments)), text_(text) {}

  const Function& function() const { return function_; }
  const IRModule& module() const { return module_; }

  /// Adds a function that computes `expression`, to be of type `type`.
  std::string AddInput(const ProgramArguments& arguments, const std::string& name, const std::string& expression,
                       const Type& type) {
    std::string function = "input " + name;
    text_ = WithDefinitions(text_, fmt::format("def @\"{}\"() -> {} {{ {} }}\n", function, ToString(type), expression));
    try {
      module_ = ParseModule(text_, arguments.file);
    } catch (const Error& error) {
      throw Error(error.category(), error.message(), "--input " + name, error.hint());
    }
    return function;
  }

 private:
  IRModule module_;
  Function function_;
  std::string text_;
};

std::pair<std::string, std::string> SplitInput(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw Error(ErrorCategory::kInput, fmt::format("malformed input '{}'", text), "--input",
                "write NAME=NUMBER, NAME=FILE.npy or NAME=EXPRESSION");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// The value of each parameter, in order.
std::vector<Given> GatherInputs(Program& program, const ProgramArguments& arguments) {
  const std::vector<Var> params = program.function()->params();
  std::map<std::string, Given> given;
  if (!arguments.inputs.empty()) {
    for (const auto& [name, tensor] : ReadNpz(arguments.inputs)) {
      given[name.starts_with("in.") ? name.substr(3) : name].tensor = tensor;
    }
  }
  for (const std::string& input : arguments.values) {
    const auto [name, text] = SplitInput(input);
    const auto has_name = [&, wanted = name](const Var& param) { return param->name() == wanted; };
    const auto param = std::find_if(params.begin(), params.end(), has_name);
    if (param == params.end()) {
      std::string names;
      for (const Var& known : params) names += (names.empty() ? "'" : ", '") + known->name() + "'";
      throw Error(ErrorCategory::kInput, fmt::format("'@{}' has no parameter '{}'", arguments.function, name),
                  "--input", names.empty() ? "it has none" : "there are " + names);
    }
    const Type& type = (*param)->checked_type();
    if (const std::optional<Tensor> scalar = ScalarOf(text, type)) {
      given[name] = {*scalar, ""};
    } else if (std::filesystem::is_regular_file(text)) {
      given[name] = {ReadArray(text), ""};
    } else {
      given[name] = {{}, program.AddInput(arguments, name, text, type)};
    }
  }
  std::vector<Given> inputs;
  uint64_t seed = 1;
  for (const Var& param : params) {
    Given value = given[param->name()];
    const TensorTypeNode* type = AsTensorType(param->checked_type());
    if (!value.tensor.defined() && value.function.empty() && arguments.random && type != nullptr && type->is_static()) {
      value.tensor = Tensor::Empty(type->static_shape(), type->dtype());
      FillRandom(value.tensor, seed++);
    }
    if (!value.tensor.defined() && value.function.empty()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("no value for parameter '{}: {}'", param->name(), ToString(param->checked_type())), "",
                  fmt::format("give --input '{}=VALUE', --inputs FILE.npz or, for tensors of known shape, --random",
                              param->name()));
    }
    inputs.push_back(std::move(value));
  }
  return inputs;
}

/// out0, out1 … of the tensors in a result.
void WriteOutputs(const std::string& file, const Value& result) {
  std::map<std::string, Tensor> arrays;
  for (const Tensor& tensor : FlattenTensors(result)) arrays[fmt::format("out{}", arrays.size())] = tensor;
  WriteNpz(file, arrays);
}

}  // namespace

bool IsRelayText(const std::string& file) {
  const std::string suffix = std::filesystem::path(file).extension();
  if (suffix == ".relay" || suffix == ".clg") return suffix == ".relay";
  std::ifstream stream(file, std::ios::binary);
  char begin[512];
  stream.read(begin, sizeof begin);
  const std::string_view text(begin, static_cast<size_t>(stream.gcount()));
  return !text.empty() && text.find('\0') == std::string_view::npos &&
         (text.find("def @") != std::string_view::npos || text.find("#[version") != std::string_view::npos);
}

void RunProgram(const ProgramArguments& arguments) {
  Program program(ReadFile(arguments.file), arguments);
  if (arguments.disassemble) {
    fmt::print("{}", vm::Compile(program.module()).Disassemble());
    return;
  }
  const std::vector<Given> inputs = GatherInputs(program, arguments);
  std::optional<vm::Machine> machine;
  if (!arguments.interpret) machine.emplace(vm::Compile(program.module()));
  const auto call = [&](const std::string& function, std::vector<Value> args) {
    return machine ? machine->Invoke(function, std::move(args))
                   : Interpret(program.module(), function, std::move(args));
  };
  std::vector<Value> args;
  for (const Given& input : inputs) {
    args.push_back(input.function.empty() ? Value(input.tensor) : call(input.function, {}));
  }
  const auto started = std::chrono::steady_clock::now();
  const Value result = call(arguments.function, std::move(args));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (!arguments.outputs.empty()) WriteOutputs(arguments.outputs, result);
  const std::string type = ToString(program.function()->body()->checked_type());
  if (arguments.json) {
    PrintJson({{"schema", 1}, {"first_run_seconds", seconds}, {"type", type}, {"result", ToString(result)}});
  } else {
    fmt::print("{}\n", ToString(result));
  }
}

}  // namespace collage::cli
