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
#include <fnmatch.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "collage/frontend/onnx.h"
#include "collage/support/error.h"
#include "ir/evaluate.h"
#include "runtime/compare.h"
#include "runtime/npy.h"

namespace collage {
namespace {

struct Refusal {
  std::string op;
  std::string pattern;
  std::string reason;
  int uses = 0;
};

struct Case {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  Tolerance tolerance;
};

/// How many inputs had to be given as constants for the import to succeed.
enum class Binding { kNone, kIntegers, kAll };

struct Outcome {
  bool passed = false;
  bool refused = false;
  Binding binding = Binding::kNone;
  std::string text;
};

std::vector<Refusal> ReadTable(const std::filesystem::path& path) {
  std::vector<Refusal> table;
  std::ifstream file(path);
  if (!file) throw Error(ErrorCategory::kInput, "cannot read " + path.string());
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Refusal refusal;
    words >> refusal.op >> refusal.pattern >> std::ws;
    std::getline(words, refusal.reason);
    if (refusal.reason.empty()) throw Error(ErrorCategory::kInput, "no reason in line: " + line, path.string());
    table.push_back(std::move(refusal));
  }
  return table;
}

/// The arrays "PREFIX.0", "PREFIX.1", …
std::vector<Tensor> ArraysOf(const std::map<std::string, Tensor>& arrays, const std::string& prefix) {
  std::vector<Tensor> result;
  for (size_t i = 0;; ++i) {
    const std::string name = fmt::format("{}.{}", prefix, i);
    const auto plain = arrays.find(name);
    const auto brain = arrays.find(name + ":bfloat16");
    if (plain != arrays.end()) {
      result.push_back(plain->second);
    } else if (brain != arrays.end()) {
      const Tensor& bits = brain->second;
      result.push_back(Tensor::View(bits.shape(), kBFloat16, bits.raw(), std::make_shared<Tensor>(bits)));
    } else {
      return result;
    }
  }
}

Case ReadCase(const std::filesystem::path& path) {
  const std::map<std::string, Tensor> arrays = ReadNpz(path);
  Case result{ArraysOf(arrays, "in"), ArraysOf(arrays, "out"), {arrays.at("rtol").At(0), arrays.at("atol").At(0)}};
  // The cases' own absolute tolerance is below what a sum of float32 is off by.
  result.tolerance.absolute = std::max(result.tolerance.absolute, 1e-6);
  return result;
}

/// Results of 16 bits may be off by some units in their last place: values between operators are rounded, too.
Tolerance ToleranceOf(DataType dtype, Tolerance tolerance) {
  const double unit = dtype == kBFloat16 ? 0x1p-8 : dtype == kFloat16 ? 0x1p-11 : 0;
  return {std::max(tolerance.relative, 4 * unit), std::max(tolerance.absolute, unit)};
}

Outcome Try(const std::filesystem::path& model, const Case& data, const std::vector<std::string>& names,
            Binding binding) {
  Outcome outcome;
  outcome.binding = binding;
  ImportOptions options;
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
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    if (!options.constants.contains(names[i])) inputs.push_back(data.inputs[i]);
  }
  const std::vector<Tensor> outputs = Evaluate(module.main(), inputs);
  if (outputs.size() != data.outputs.size()) {
    outcome.text = fmt::format("{} outputs where {} are wanted", outputs.size(), data.outputs.size());
    return outcome;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Comparison comparison =
        Compare(outputs[i], data.outputs[i], ToleranceOf(data.outputs[i].dtype(), data.tolerance));
    if (comparison.agrees) continue;
    outcome.text = fmt::format("output {}: {}", i, comparison.difference);
    return outcome;
  }
  outcome.passed = true;
  return outcome;
}

/// Imports with open inputs if that is possible; else with integers (shapes, axes, counts) as constants; else with all.
Outcome Run(const std::filesystem::path& model) {
  const std::filesystem::path arrays = std::filesystem::path(model).replace_extension(".npz");
  Outcome outcome;
  try {
    Case data;
    const bool has_data = std::filesystem::exists(arrays);
    if (has_data) data = ReadCase(arrays);
    const std::vector<std::string> names = OnnxInputNames(model);
    for (Binding binding : {Binding::kNone, Binding::kIntegers, Binding::kAll}) {
      try {
        outcome = Try(model, data, names, binding);
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

/// As Run, in a process of its own: a crash is one failed case.
Outcome RunApart(const std::filesystem::path& model) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    const Outcome outcome = Run(model);
    const std::string message = fmt::format("{}{}{}{}", outcome.passed ? 'p' : '-', outcome.refused ? 'r' : '-',
                                            static_cast<int>(outcome.binding), outcome.text);
    const bool written = write(ends[1], message.data(), message.size()) == static_cast<ssize_t>(message.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string message;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) message.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return {false, false, Binding::kNone, fmt::format("ends with signal {}", WTERMSIG(status))};
  if (message.size() < 3) return {false, false, Binding::kNone, "ends without a word"};
  return {message[0] == 'p', message[1] == 'r', static_cast<Binding>(message[2] - '0'), message.substr(3)};
}

bool Fits(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

int Main(int argc, char** argv) {
  std::vector<Refusal> table = ReadTable(argv[2]);
  std::set<std::filesystem::path> models;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.path().extension() == ".onnx") models.insert(entry.path());
  }
  const bool all = argc == 3;
  int passed = 0, refused = 0, failed = 0, total = 0;
  std::map<Binding, int> bindings;
  for (const std::filesystem::path& model : models) {
    const std::string name = model.stem().string();
    if (!all && std::none_of(argv + 3, argv + argc, [&](const char* pattern) { return Fits(pattern, name); })) continue;
    ++total;
    const auto row = std::find_if(table.begin(), table.end(), [&](const Refusal& r) { return Fits(r.pattern, name); });
    const bool listed = row != table.end();
    if (listed) ++row->uses;
    const Outcome outcome = RunApart(model);
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
  for (const Refusal& row : table) {
    if (!all || row.uses > 0) continue;
    ++failed;
    fmt::print("FAIL the table's pattern '{}' fits no case\n", row.pattern);
  }
  fmt::print(
      "{} of {} cases pass ({} with open inputs, {} with constant integers, {} as constants), {} are refused as the "
      "table says, {} fail\n",
      passed, total, bindings[Binding::kNone], bindings[Binding::kIntegers], bindings[Binding::kAll], refused, failed);
  return failed == 0 && total > 0 ? 0 : 1;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc < 3) {
    fmt::print(stderr, "usage: onnx_conformance CASES TABLE [NAME...]\n");
    return 2;
  }
  try {
    return collage::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
