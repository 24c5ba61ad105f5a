// run_program.cc: `collage run` for Relay text. Inputs that are expressions become functions without parameters behind
// the program's text, so that they may use its constructors and functions.
#include "run_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "collage/ir/strings.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "command.h"
#include "ir/eval/interpreter.h"
#include "profile/subject.h"
#include "runtime/npy.h"
#include "runtime/random_inputs.h"
#include "support/argument_text.h"
#include "support/edit_distance.h"
#include "support/file.h"

namespace collage::cli {
namespace {

/// The value given for one parameter: a tensor, or the name of the function that computes it.
struct Given {
  StoredArray array;
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

Type TypeOf(const Var& param) { return param->checked_type() ? param->checked_type() : param->type_annotation(); }

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

/// The strings that `text` names: a file, or strings between commas, of which a single one may be a scalar.
StoredArray TextsOf(const std::string& text, const Type& type, StringNumbers& numbers) {
  if (std::filesystem::is_regular_file(text)) return ReadArray(text, numbers);
  const std::vector<std::string> texts = SplitCommas(text);
  const auto count = static_cast<int64_t>(texts.size());
  const TensorTypeNode* tensor = AsTensorType(type);
  const size_t rank = tensor == nullptr ? 1 : static_cast<size_t>(tensor->rank());
  Shape shape(rank, 1);
  if (!shape.empty()) shape.back() = count;
  const Tensor all = Tensor::Empty({count}, kInt64);
  for (size_t i = 0; i < texts.size(); ++i) all.data<int64_t>()[i] = numbers.Add(texts[i]);
  return {shape.empty() && count != 1 ? all : all.Reshaped(shape), true};
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

/// Makes the value of a parameter from text that is neither a number nor a file: the name of a function that computes
/// it.
using AddExpression = std::function<std::string(const std::string& name, const std::string& text, const Type& type)>;

/// The shape of random values for a parameter, by its place.
using ShapeOfParam = std::function<Shape(size_t place)>;

/// The value of each parameter, in order; strings get numbers of `numbers`. `shape_of` may be empty.
std::vector<Given> GatherInputs(const std::vector<Var>& params, const std::vector<std::string>& outputs,
                                const ProgramArguments& arguments, const AddExpression& add_expression,
                                const StringTensors& strings, StringNumbers& numbers, const ShapeOfParam& shape_of) {
  RunNames names{{}, outputs};
  for (const Var& param : params) names.inputs.push_back(param->name());
  std::map<std::string, Given> given;
  if (!arguments.inputs.empty()) {
    for (const auto& [name, array] : ReadInputs(arguments.inputs, names, numbers)) given[name].array = array;
  }
  for (const std::string& input : arguments.values) {
    const auto [name, text] = SplitInput(input, names, "write NAME=NUMBER, NAME=FILE.npy or NAME=EXPRESSION");
    const auto has_name = [&, wanted = name](const Var& param) { return param->name() == wanted; };
    const auto param = std::find_if(params.begin(), params.end(), has_name);
    const Type type = TypeOf(*param);
    if (strings.IsParam(static_cast<size_t>(param - params.begin()))) {
      given[name] = {TextsOf(text, type, numbers), ""};
    } else if (const std::optional<Tensor> scalar = ScalarOf(text, type)) {
      given[name] = {{*scalar}, ""};
    } else if (std::filesystem::is_regular_file(text)) {
      given[name] = {ReadArray(text, numbers), ""};
    } else {
      given[name] = {{}, add_expression(name, text, type)};
    }
  }
  std::vector<Given> inputs;
  uint64_t seed = 1;
  for (size_t place = 0; place < params.size(); ++place) {
    const Var& param = params[place];
    Given value = given[param->name()];
    Tensor& tensor = value.array.tensor;
    CheckIsText(param->name(), value.array, strings.IsParam(place));
    const TensorTypeNode* type = AsTensorType(TypeOf(param));
    const bool has_shape = type != nullptr && (type->is_static() || shape_of);
    if (!tensor.defined() && value.function.empty() && arguments.random && has_shape) {
      tensor = Tensor::Empty(type->is_static() ? type->static_shape() : shape_of(place), type->dtype());
      FillRandom(tensor, seed++);
    }
    if (!tensor.defined() && value.function.empty()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("no value for input '{}' of type {}", param->name(), ToString(TypeOf(param))), "",
                  fmt::format("give --input '{}=VALUE', --inputs FILE.npz or, for tensors, --random", param->name()));
    }
    inputs.push_back(std::move(value));
  }
  return inputs;
}

/// The names of the tensors in the result of a function, as far as it has any.
std::vector<std::string> OutputNames(const Function& function) {
  std::vector<std::string> names;
  const AttrValue* list = function->attrs().Find("output_names");
  if (list != nullptr && list->as_list() != nullptr) {
    for (const AttrValue& name : *list->as_list()) {
      if (name.as_string() != nullptr) names.push_back(*name.as_string());
    }
  }
  return names;
}

/// The result as text: strings in place of their numbers.
std::string ResultText(const Value& result, const Outputs& outputs, const StringNumbers& numbers) {
  if (std::ranges::none_of(outputs.values, &StoredArray::is_text)) return ToString(result);
  std::vector<std::string> parts;
  for (const auto& [tensor, is_text] : outputs.values) {
    std::vector<std::string> texts;
    for (int64_t i = 0; is_text && i < tensor.num_elements(); ++i) {
      texts.push_back(fmt::format("\"{}\"", numbers.TextOf(tensor.data<int64_t>()[i])));
    }
    parts.push_back(is_text ? fmt::format("[{}]", fmt::join(texts, ", ")) : ToString(Value(tensor)));
  }
  return parts.size() == 1 ? parts[0] : fmt::format("({})", fmt::join(parts, ", "));
}

/// Prints, compares and writes what came out; the first tensors in the result have `names`. Whether it is what is
/// expected.
bool Report(const ProgramArguments& arguments, const Value& result, std::vector<std::string> names,
            std::chrono::steady_clock::time_point started, const std::string& type, const StringTensors& strings,
            StringNumbers& numbers) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const bool wants_tensors = !arguments.outputs.empty() || !arguments.comparison.expected.empty();
  const bool has_tensors = wants_tensors || TypeOf(result) != nullptr;  // else data or functions
  const std::vector<Tensor> tensors = has_tensors ? FlattenTensors(result) : std::vector<Tensor>();
  while (names.size() < tensors.size()) names.push_back(fmt::format("output_{}", names.size()));
  names.resize(tensors.size());
  Outputs outputs{std::move(names), {}};
  for (size_t i = 0; i < tensors.size(); ++i) outputs.values.push_back({tensors[i], strings.IsResult(i)});
  CheckOutputsFile(arguments.outputs, {{}, outputs.names});
  if (!arguments.outputs.empty()) WriteOutputs(arguments.outputs, outputs, numbers);
  const bool compares = !arguments.comparison.expected.empty();
  Fact table = OutputsTable(outputs);
  const bool agrees = !compares || CompareOutputs(arguments.comparison, outputs, numbers, table);
  table.is_detail = !compares;  // the result says it
  std::vector<Fact> facts{Fact::Seconds("first_run_seconds", "first run", seconds).Detail(),
                          Fact::Text("result", "result", ResultText(result, outputs, numbers)).Detail(compares),
                          std::move(table)};
  if (!type.empty()) facts.push_back(Fact::Text("type", "type", type).Detail());
  PrintReport(Fact::Report(1, std::move(facts)).Says(compares ? "" : "{result}"), arguments.json);
  return agrees;
}

}  // namespace

bool RunProgram(const ProgramArguments& arguments) {
  Program program(ReadFile(arguments.file), arguments);
  if (arguments.disassemble) {
    fmt::print("{}", vm::Compile(program.module()).Disassemble());
    return true;
  }
  const std::vector<std::string> names = OutputNames(program.function());
  const auto add_input = [&](const std::string& name, const std::string& text, const Type& type) {
    return program.AddInput(arguments, name, text, type);
  };
  const StringTensors strings(program.function()->attrs());
  StringNumbers numbers(&strings.known());
  const std::vector<Given> inputs =
      GatherInputs(program.function()->params(), names, arguments, add_input, strings, numbers, {});
  std::optional<vm::Machine> machine;
  if (!arguments.interpret) machine.emplace(vm::Compile(program.module()));
  const auto call = [&](const std::string& function, std::vector<Value> args) {
    return machine ? machine->Invoke(function, std::move(args))
                   : Interpret(program.module(), function, std::move(args));
  };
  std::vector<Value> args;
  for (const Given& input : inputs) {
    args.push_back(input.function.empty() ? Value(input.array.tensor) : call(input.function, {}));
  }
  const auto started = std::chrono::steady_clock::now();
  const Value result = call(arguments.function, std::move(args));
  const std::string type = ToString(program.function()->body()->checked_type());
  return Report(arguments, result, names, started, type, strings, numbers);
}

bool RunBytecode(const ProgramArguments& arguments) {
  const vm::Executable executable = vm::Executable::Load(arguments.file);
  if (arguments.disassemble) {
    fmt::print("{}", executable.Disassemble());
    return true;
  }
  if (arguments.interpret) {
    throw Error(ErrorCategory::kInput, "--interpret is for Relay text", arguments.file);
  }
  std::vector<Value> args;
  const auto refuse = [](const std::string& name, const std::string& text, const Type&) -> std::string {
    throw Error(ErrorCategory::kInput, fmt::format("'{}' is neither a number nor a file", text), "--input " + name,
                "expressions are for Relay text");
  };
  const std::vector<Var> params = executable.Parameters(arguments.function);
  const std::vector<std::string> names = executable.ResultNames(arguments.function);
  const StringTensors strings = executable.Strings(arguments.function);
  StringNumbers numbers(&strings.known());
  const auto shape_of = [&](size_t place) {
    return ShapeOfInput(executable, arguments.function, place, arguments.sizes, arguments.file);
  };
  for (const Given& input : GatherInputs(params, names, arguments, refuse, strings, numbers, shape_of)) {
    args.emplace_back(input.array.tensor);
  }
  vm::Machine machine(executable);
  const auto started = std::chrono::steady_clock::now();
  const Value result = machine.Invoke(arguments.function, std::move(args));
  return Report(arguments, result, names, started, "", strings, numbers);
}

}  // namespace collage::cli
