// open_model_check.cc: two imports, the same inputs, and every way in which their results can differ.
#include "unit/frontend/open_model_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "backends/builtin_toolchains.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/interpreter.h"
#include "ir/eval/random_draws.h"
#include "program/regions.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

/// Both imports draw the same random numbers.
constexpr uint64_t kRandomSeed = 1;

/// Results, or the error that there was instead.
struct Ran {
  std::vector<Tensor> results;
  std::optional<std::string> error;
  bool is_internal = false;  ///< no error for the user
};

Ran Try(const std::function<std::vector<Tensor>()>& run) {
  try {
    return {run(), std::nullopt, false};
  } catch (const Error& error) {
    const bool is_users = error.category() == ErrorCategory::kInput || error.category() == ErrorCategory::kUnsupported;
    return {{}, error.Format(), !is_users};
  } catch (const std::exception& error) {
    return {{}, error.what(), true};
  }
}

/// `module` on `engine`, which may be called many times.
std::function<std::vector<Tensor>(const std::vector<Tensor>&)> Runner(const IRModule& module, OpenEngine engine) {
  const auto values = [](const std::vector<Tensor>& tensors) {
    return std::vector<Value>(tensors.begin(), tensors.end());
  };
  if (engine == OpenEngine::kInterpreter) {
    return [module, values](const std::vector<Tensor>& inputs) {
      RandomDraws draws(kRandomSeed);
      return FlattenTensors(Interpret(module, "main", values(inputs), {.evaluate = {.draws = &draws}}));
    };
  }
  if (ToolchainRegistry::Global().All().empty()) AddBuiltinToolchains(ToolchainRegistry::Global());
  const Toolchain& native = *ToolchainRegistry::Global().Native();
  const IRModule program = PrepareForPartitioning(RunPasses({"ToGraphNormalForm"}, InferTypes(module)));
  const ProgramRegions regions =
      FindRegions(program, /*few_elements=*/16,
                  {[&](const CallNode& call) { return native.SupportsDynamicShapes(call).ok(); },
                   [&](const CallNode& call) { return native.SupportsCall(call).ok(); }});
  vm::CompileOptions options;
  options.for_dynamic_shapes = &native;
  const auto machine =
      std::make_shared<vm::Machine>(vm::Executable::Deserialize(vm::Compile(regions.module, options).Serialize()));
  return [machine, values](const std::vector<Tensor>& inputs) {
    const Value first = machine->Invoke("main", values(inputs), {.random_seed = kRandomSeed});
    // The second run has the sizes planned (bytecode/replay.h).
    const Value second = machine->Invoke("main", values(inputs), {.random_seed = kRandomSeed});
    if (!ValuesEqual(first, second)) throw Error(ErrorCategory::kInternal, "a second run gives other results");
    return FlattenTensors(second);
  };
}

/// The difference between results; "" where there is none.
std::string Difference(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  if (actual.size() != expected.size()) {
    return fmt::format("{} results, {} are right", actual.size(), expected.size());
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const Comparison comparison = Compare(actual[i], expected[i], ToleranceFor(expected[i]));
    if (!comparison.agrees) return fmt::format("result {}: {}", i, comparison.difference);
  }
  return "";
}

std::vector<Tensor> InputsOf(const IRModule& module, const InputShapes& shapes, const OpenCheckOptions& options) {
  std::vector<Tensor> inputs;
  for (const Var& param : module.main()->params()) {
    const TensorTypeNode& type = *AsTensorType(param->checked_type());
    const auto given = shapes.find(param->name());
    const Shape shape = given == shapes.end() ? type.static_shape() : given->second;
    if (options.make_input) {
      inputs.push_back(options.make_input(param->name(), shape, type.dtype()));
    } else {
      inputs.push_back(Tensor::Empty(shape, type.dtype()));
      FillRandom(inputs.back(), inputs.size(), 0, 7);
    }
  }
  return inputs;
}

}  // namespace

std::string ToString(const InputShapes& shapes) {
  std::string text;
  for (const auto& [name, shape] : shapes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, ToString(shape));
  }
  return text;
}

OpenVerdict CheckOpenModel(const std::filesystem::path& path, const std::vector<InputShapes>& sizes,
                           const OpenCheckOptions& options) {
  OpenVerdict verdict;
  const auto wrong = [&](const std::string& text) {
    verdict.kind = OpenVerdict::Kind::kWrong;
    verdict.text = text;
    return verdict;
  };
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> run;
  IRModule open;
  try {
    open = ImportOnnx(path, {.constants = options.constants});
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kInput && error.category() != ErrorCategory::kUnsupported) {
      return wrong("the import fails: " + error.Format());
    }
    return {.kind = OpenVerdict::Kind::kRefused, .text = error.message()};
  } catch (const std::exception& error) {
    return wrong(fmt::format("the import fails: {}", error.what()));
  }
  try {
    run = Runner(open, options.engine);
  } catch (const std::exception& error) {
    return wrong(fmt::format("what is imported does not compile: {}", error.what()));
  }
  for (const InputShapes& shapes : sizes) {
    std::vector<Tensor> inputs;
    const Ran bound = Try([&] {
      const IRModule module = ImportOnnx(path, {.shapes = shapes, .constants = options.constants});
      inputs = InputsOf(module, shapes, options);
      RandomDraws draws(kRandomSeed);
      return Evaluate(module.main(), inputs, {.draws = &draws});
    });
    if (bound.is_internal) return wrong(fmt::format("with {} bound: {}", ToString(shapes), *bound.error));
    if (inputs.empty()) inputs = InputsOf(open, shapes, options);
    const Ran actual = Try([&] { return run(inputs); });
    if (actual.error && (actual.is_internal || !bound.error)) {
      return wrong(fmt::format("at {}: {}{}", ToString(shapes), *actual.error,
                               bound.error ? "\nwhich the bound import refuses: " + *bound.error : ""));
    }
    if (bound.error) {
      ++(actual.error ? verdict.num_refused : verdict.num_lenient);
      continue;
    }
    const std::string difference = Difference(actual.results, bound.results);
    if (!difference.empty()) return wrong(fmt::format("at {}: {}", ToString(shapes), difference));
    ++verdict.num_equal;
  }
  return verdict;
}

}  // namespace collage
