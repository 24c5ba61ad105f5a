// onnx_conformance.cc: ONNX's own test cases for its operators: import, infer types, evaluate, compare.
//
//     onnx_conformance CASES TABLE [NAME…]
//
// CASES is the folder that write_cases.py fills, TABLE lists the cases that are refused, by patterns:
//
//     OPERATOR  PATTERN  REASON
//
// A case that no pattern fits must pass. A case that one fits must be refused with an error for the user
// (kUnsupported), so that a case that begins to pass, or to give wrong results, fails the test until the table says the
// truth again. With NAMEs (patterns), only these cases run, and what happened to each is printed.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>

#include "collage/frontend/onnx.h"
#include "collage/ir/strings.h"
#include "collage/support/error.h"
#include "conformance/onnx/node_cases.h"
#include "ir/eval/evaluate.h"

namespace collage {
namespace {

struct Outcome {
  bool passed = false;
  bool refused = false;
  Binding binding = Binding::kNone;
  std::string text;
};

Outcome Try(const std::filesystem::path& model, NodeCase& data, Binding binding) {
  Outcome outcome;
  outcome.binding = binding;
  ImportOptions options;
  const std::vector<std::string> names = TensorNames(data, OnnxInputNames(model), options.lengths);
  for (size_t i = 0; i < data.inputs.size() && i < names.size(); ++i) {
    const Tensor& value = data.inputs[i];
    const bool bound = binding == Binding::kAll || (binding == Binding::kIntegers && !value.dtype().is_floating());
    if (bound) {
      options.constants[names[i]] = value;
    } else {
      options.shapes[names[i]] = value.shape();
    }
  }
  const IRModule module = ImportOnnx(model, options);
  const StringTensors strings(module.main()->attrs());
  StringNumbers numbers(&strings.known());
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    if (options.constants.contains(names[i])) continue;
    const bool is_text = strings.IsParam(inputs.size());
    inputs.push_back(is_text ? Renumbered(data.inputs[i], data.strings, numbers) : data.inputs[i]);
  }
  std::vector<Tensor> outputs = Evaluate(module.main(), inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (strings.IsResult(i)) outputs[i] = Renumbered(outputs[i], numbers, data.strings);
  }
  outcome.text = Difference(outputs, data);
  outcome.passed = outcome.text.empty();
  return outcome;
}

/// Imports with open inputs if that is possible; else with integers (shapes, axes, counts) as constants; else with all.
Outcome Run(const std::filesystem::path& model) {
  const std::filesystem::path arrays = std::filesystem::path(model).replace_extension(".npz");
  Outcome outcome;
  try {
    NodeCase data;
    const bool has_data = std::filesystem::exists(arrays);
    if (has_data) data = ReadNodeCase(arrays);
    for (Binding binding : {Binding::kNone, Binding::kIntegers, Binding::kAll}) {
      try {
        outcome = Try(model, data, binding);
        if (!has_data) outcome = {false, false, binding, "imported, although its data are no tensors of numbers"};
        return outcome;
      } catch (const Error& error) {
        outcome.refused = error.category() == ErrorCategory::kUnsupported;
        outcome.text = error.message();
        if (!outcome.refused) return outcome;
      }
    }
  } catch (const Error& error) {
    outcome.refused = error.category() == ErrorCategory::kUnsupported;
    outcome.text = error.message();
  } catch (const std::exception& error) {
    outcome.text = error.what();
  }
  return outcome;
}

/// As Run, in a process of its own.
Outcome RunModelApart(const std::filesystem::path& model) {
  const auto text = [](const Outcome& outcome) {
    return fmt::format("{}{}{}{}", outcome.passed ? 'p' : '-', outcome.refused ? 'r' : '-',
                       static_cast<int>(outcome.binding), outcome.text);
  };
  const std::string message = RunApart([&] { return text(Run(model)); },
                                       [&](const std::string& what) {
                                         return text({false, false, Binding::kNone, what});
                                       });
  return {message[0] == 'p', message[1] == 'r', static_cast<Binding>(message[2] - '0'), message.substr(3)};
}

int Main(int argc, char** argv) {
  std::vector<Refusal> table = ReadTable(argv[2]);
  const bool all = argc == 3;
  int passed = 0, refused = 0, failed = 0, total = 0;
  std::map<Binding, int> bindings;
  for (const std::filesystem::path& model : ModelsIn(argv[1])) {
    const std::string name = model.stem().string();
    if (!all && std::none_of(argv + 3, argv + argc, [&](const char* pattern) { return Fits(pattern, name); })) continue;
    ++total;
    Refusal* const row = FindRefusal(table, name);
    const bool listed = row != nullptr;
    if (listed) ++row->uses;
    const Outcome outcome = RunModelApart(model);
    if (!all)
      fmt::print("{} {}: {}\n", outcome.passed ? "pass" : outcome.refused ? "refused" : "FAIL", name, outcome.text);
    if (outcome.passed) {
      ++passed;
      ++bindings[outcome.binding];
    }
    if (listed && outcome.refused) {
      ++refused;
      continue;
    }
    if (outcome.passed && !listed) continue;
    ++failed;
    if (!all) continue;
    const char* why = outcome.passed    ? "passes, but is in the table"
                      : outcome.refused ? "is refused, but is not in the table"
                                        : "is wrong";
    fmt::print("FAIL {} {}: {}\n", name, why, outcome.text);
  }
  if (all) failed += ReportUnused(table);
  fmt::print(
      "{} of {} cases pass ({} with open inputs, {} with constant integers, {} as constants), {} are refused as the "
      "table says, {} fail\n",
      passed, total, bindings[Binding::kNone], bindings[Binding::kIntegers], bindings[Binding::kAll], refused, failed);
  return failed == 0 && total > 0 ? 0 : 1;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  return collage::RunConformance(argc, argv, 2, "onnx_conformance CASES TABLE [NAME...]", collage::Main);
}
