// golden.cc: runs the pairs of modules of tests/golden: text in, passes, text out, compared with the text expected; see
// README.md. Also: what comes out can be read back, and computes what the input computed, on random inputs.
// --variant=FILE runs them in another way that must give the same (tests/variants).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "driver/builtins.h"
#include "golden/random_constant.h"
#include "ir/eval/interpreter.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"
#include "support/file.h"
#include "support/json_reader.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

/// A toolchain for tests: "acme" takes convolutions and dense layers with what follows them, by patterns; "fine" takes
/// single element-wise operators.
class TestToolchain : public Toolchain {
 public:
  explicit TestToolchain(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string description() const override { return "for tests"; }
  Availability Probe() const override { return {.available = false, .reason = "for tests"}; }
  int priority() const override { return 100; }
  std::vector<PatternTableEntry> PatternTable() const override {
    if (name_ != "acme") return {};
    const auto is_small = [](const Function& composite) -> Result<void> {
      const TensorTypeNode* type = AsTensorType(composite->body()->checked_type());
      if (type->shape()[1].size() > 64) return Reason{"too many channels", "acme"};
      return {};
    };
    return {{"acme.conv2d_bias_relu", "nn.relu(add(nn.conv2d(*, const), *))", is_small},
            {"acme.conv2d", "nn.conv2d(*, const)", is_small},
            {"acme.dense", "nn.dense(*, const)", {}}};
  }
  Result<void> SupportsCall(const CallNode& call) const override {
    if (name_ != "fine") return Toolchain::SupportsCall(call);
    if (call.op()->pattern <= OpPatternKind::kInjective) return {};
    return Reason{"not element-wise", name_};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest&) const override {
    return Reason{"compiles nothing", name_};
  }

 private:
  std::string name_;
};

/// The lines `// key: value` at the head of a case.
using Directives = std::multimap<std::string, std::string>;

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

Directives ReadDirectives(const std::string& text) {
  static constexpr const char* kKnown[] = {"passes", "config",   "opt-level", "constant",
                                           "error",  "evaluate", "tolerance"};
  Directives directives;
  size_t at = 0;
  while (text.substr(at, 2) == "//") {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at + 2, end - at - 2);
    const size_t colon = line.find(':');
    const std::string key = Trim(line.substr(0, colon));
    if (colon != std::string::npos && std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) {
      directives.emplace(key, Trim(line.substr(colon + 1)));
    }
    at = std::min(end + 1, text.size());
  }
  return directives;
}

std::string ValueOf(const Directives& directives, const std::string& key) {
  auto it = directives.find(key);
  return it == directives.end() ? "" : it->second;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (std::string part = Trim(text.substr(at, end - at)); !part.empty()) parts.push_back(std::move(part));
    at = end + 1;
  }
  return parts;
}

PassContext ContextOf(const Directives& directives) {
  PassContext context;
  const std::string level = ValueOf(directives, "opt-level");
  context.opt_level = level.empty() ? 4 : std::stoi(level);
  for (auto [it, end] = directives.equal_range("config"); it != end; ++it) {
    const size_t equals = it->second.find('=');
    context.SetConfigText(it->second.substr(0, equals), it->second.substr(equals + 1));
  }
  return context;
}

/// Another way to run the cases, with the same results.
struct Variant {
  bool verify = false;         ///< after each pass: it is typed, and its text parses back to the same text
  bool reparse = false;        ///< between passes: the module is printed and parsed
  bool save_and_load = false;  ///< results come from bytecode that was serialised and read back
};

Variant ReadVariant(const std::string& file) {
  const JsonReader json = JsonReader::Parse(ReadFile(file), file);
  json.AllowOnly({"summary", "verify", "reparse", "save_and_load"});
  return {json.BoolOr("verify", false), json.BoolOr("reparse", false), json.BoolOr("save_and_load", false)};
}

/// Throws kInternal after a pass that leaves a module which is not what its text says.
class VerifyingInstrument : public PassInstrument {
 public:
  void After(const Pass& pass, const IRModule& module) override {
    const std::string text = PrintModule(module);
    if (PrintModule(ParseModule(text, "after " + pass.name)) == text) return;
    throw Error(ErrorCategory::kInternal, "the module after '" + pass.name + "' does not parse back to itself");
  }
};

IRModule RunAll(const std::vector<std::string>& passes, const IRModule& module, PassContext context,
                const Variant& variant) {
  if (variant.verify) context.instruments.push_back(std::make_shared<VerifyingInstrument>());
  if (!variant.reparse) return Sequential(passes).Run(module, context);
  IRModule result = module;
  for (size_t i = 0; i < passes.size(); ++i) {
    if (i > 0) result = ParseModule(PrintModule(result), "before " + passes[i]);
    result = Sequential({passes[i]}).Run(result, context);
  }
  return result;
}

/// What `@main` computes.
Value Computed(const IRModule& module, const std::vector<Value>& inputs, const Variant& variant) {
  if (!variant.save_and_load) return Interpret(module, "main", inputs);
  const vm::Executable loaded = vm::Executable::Deserialize(vm::Compile(module).Serialize());
  return vm::Machine(loaded).Invoke("main", inputs);
}

/// Empty, or how `after` computes something else than `before`.
std::string CompareMeanings(const IRModule& before, const IRModule& after, const Tolerance& tolerance,
                            const Variant& variant) {
  std::vector<Value> inputs;
  uint64_t seed = 77;
  for (const Var& param : before.main()->params()) {
    for (const Type& leaf : FlattenTensorTypes(param->checked_type())) {
      if (!AsTensorType(leaf)->is_static()) return "the inputs are dynamic: write '// evaluate: no, …' with the reason";
    }
    std::vector<Type> leaves = FlattenTensorTypes(param->checked_type());
    size_t next = 0;
    inputs.push_back(UnflattenTensors(param->checked_type(), [&] {
      const TensorTypeNode* type = AsTensorType(leaves[next++]);
      const Tensor tensor = Tensor::Empty(type->static_shape(), type->dtype());
      FillRandom(tensor, seed++);
      return tensor;
    }));
  }
  const std::vector<Tensor> expected = FlattenTensors(Interpret(before, "main", inputs));
  const std::vector<Tensor> actual = FlattenTensors(Computed(after, inputs, variant));
  if (actual.size() != expected.size()) return "another number of results";
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor same_type = tolerance.relative > 1e-4 ? actual[i].Cast(expected[i].dtype()) : actual[i];
    const Comparison comparison = Compare(same_type, expected[i], tolerance);
    if (!comparison.agrees) return fmt::format("result {}: {}", i, comparison.difference);
  }
  return "";
}

/// Text after the passes; "error: …" when that is what the case expects. `problem` says what is wrong with the result.
std::string RunCase(const fs::path& path, const Variant& variant, std::string* problem) {
  const std::string text = ReadFile(path);
  const Directives directives = ReadDirectives(text);
  ParseOptions options;
  for (auto [it, end] = directives.equal_range("constant"); it != end; ++it) {
    options.constants.push_back(golden::RandomConstant(it->second, 100 + options.constants.size()));
  }
  if (!directives.contains("passes")) throw Error(ErrorCategory::kInput, "no line '// passes: …' at the head");
  const IRModule before = ParseModule(text, path.filename().string(), options);
  IRModule after;
  try {
    after = RunAll(Split(ValueOf(directives, "passes"), ','), before, ContextOf(directives), variant);
  } catch (const Error& error) {
    if (!directives.contains("error")) throw;
    if (error.Format().find(ValueOf(directives, "error")) == std::string::npos)
      *problem = "another error: " + error.Format();
    return "error: " + error.Format() + "\n";
  }
  if (directives.contains("error")) *problem = "no error";
  const std::string whole = PrintModule(after);
  if (PrintModule(ParseModule(whole, "printed again")) != whole) *problem = "printing and reading back changes it";
  const std::string tolerance = ValueOf(directives, "tolerance");
  const double relative = tolerance.empty() ? 1e-5 : std::stod(tolerance);
  if (problem->empty() && !ValueOf(directives, "evaluate").starts_with("no")) {
    *problem = CompareMeanings(before, after, {relative, relative}, variant);
  }
  return PrintModule(after, {.metadata = false});
}

bool Check(const fs::path& path, const std::string& name, const Variant& variant, bool update) {
  fs::path expected_path = path;
  expected_path.replace_extension(".after.relay");
  std::string problem;
  std::string actual;
  try {
    actual = RunCase(path, variant, &problem);
  } catch (const Error& error) {
    fmt::print("FAILED  {}: {}\n", name, error.Format());
    return false;
  }
  if (!problem.empty()) {
    fmt::print("FAILED  {}: {}\n{}", name, problem, actual);
    return false;
  }
  const std::string expected = fs::exists(expected_path) ? ReadFile(expected_path) : "";
  if (actual == expected) return true;
  if (update) {
    std::ofstream(expected_path) << actual;
    fmt::print("written {}\n", name);
    return true;
  }
  fmt::print("FAILED  {}: expected\n{}\ngot\n{}\n", name, expected, actual);
  return false;
}

/// What the command line asks for.
struct Options {
  bool update = false;
  bool only_count = false;  ///< run no case, check only that there are enough
  Variant variant;
  std::string filter;  ///< part of a case's path; empty: all
};

Options ReadOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--update") {
      options.update = true;
    } else if (word == "--count") {
      options.only_count = true;
    } else if (word.starts_with("--variant=")) {
      options.variant = ReadVariant(word.substr(word.find('=') + 1));
    } else {
      options.filter = word;
    }
  }
  return options;
}

/// All modules before passes, sorted. Files without passes are cases that tools/golden runs, and must say so.
std::vector<fs::path> FindCases(const fs::path& folder) {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (!entry.is_regular_file() || !file.ends_with(".relay") || file.ends_with(".after.relay")) continue;
    if (const std::string text = ReadFile(entry.path()); ("\n" + text).find("\n// RUN: ") == std::string::npos) {
      cases.push_back(entry.path());
    }
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

/// Reports passes with fewer than two cases; returns how many there are.
int CountPassesWithoutCases(const std::vector<fs::path>& cases) {
  std::map<std::string, int> per_pass;
  for (const fs::path& path : cases) ++per_pass[path.parent_path().filename().string()];
  int failed = 0;
  for (const Pass& pass : AllPasses()) {
    if (per_pass[pass.name] >= 2) continue;
    fmt::print("FAILED  {} has {} cases, every pass has at least two\n", pass.name, per_pass[pass.name]);
    ++failed;
  }
  return failed;
}

int Main(const Options& options) {
  AddBuiltins();
  for (const char* name : {"acme", "fine"}) ToolchainRegistry::Global().Add(std::make_unique<TestToolchain>(name));
  const fs::path folder = COLLAGE_GOLDEN_FOLDER;
  const std::vector<fs::path> cases = FindCases(folder);
  int failed = options.filter.empty() ? CountPassesWithoutCases(cases) : 0;
  int num_run = 0;
  for (const fs::path& path : cases) {
    if (options.only_count || path.string().find(options.filter) == std::string::npos) continue;
    ++num_run;
    if (!Check(path, fs::relative(path, folder).string(), options.variant, options.update)) ++failed;
  }
  fmt::print("{} golden cases, {} failed\n", num_run, failed);
  return failed == 0 && (num_run > 0 || options.only_count) ? 0 : 1;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::Main(collage::ReadOptions(argc, argv)); }
