// compiled_devices_test.cc: compilations for the processor and a second device: files that run, each operator where it
// is wanted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "bytecode/bytecode.h"
#include "collage/compile.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "collage/vm/vm.h"
#include "driver/builtins.h"
#include "ir/eval/interpreter.h"
#include "ir/eval/sample_inputs.h"
#include "property/devices/random_placed_function.h"
#include "property/devices/second_device.h"
#include "property/for_random_modules.h"
#include "runtime/compare.h"
#include "support/file.h"

namespace collage {
namespace {

constexpr int kExtDevType = 12;

/// Both devices as targets, native kernels on the processor, at costs of a table.
CompileOptions OptionsFor(RandomSource& random, const TemporaryFolder& folder) {
  CompileOptions options;
  options.output = folder / "m.clg";
  options.database = (folder / "tuning.db").string();
  options.num_threads = 1;
  options.targets = {"llvm", "ext_dev -compiler=second"};
  options.estimator = fmt::format(
      R"(mock={{"op_cost": {{"native": {}, "second": {}}}, "fusion_benefit": 0.8, "copy": {}, "copy_byte": {}}})",
      1 + random.Below(4), 1 + random.Below(3), 0.4 * random.Below(4), random.OneIn(2) ? 0 : 1.0 / 1024);
  options.num_covers = 1;
  options.max_optimality_covers = 0;
  return options;
}

/// Plans of the file at `path`: one, or one for each kernel of a program.
std::vector<ExecutionPlan> PlansOf(const std::filesystem::path& path) {
  if (!vm::Executable::IsBytecode(path)) return {Executable::Load(path).plan()};
  std::vector<ExecutionPlan> plans;
  const vm::Executable program = vm::Executable::Load(path);
  for (const vm::KernelFunction& kernel : program.program().kernels) {
    plans.push_back(kernel.executable.plan());
  }
  return plans;
}

/// Returns how many operators that are wanted somewhere are in the file, adds the names of toolchains to `used`.
int CheckPlaces(const std::filesystem::path& path, const PlacedFunction& placed, std::set<std::string>& used) {
  int num_found = 0;
  for (const ExecutionPlan& plan : PlansOf(path)) {
    for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) {
      used.insert(kernel.toolchain);
      for (const std::string& name : kernel.nodes) {
        const auto wanted = placed.wanted.find(name);
        if (wanted == placed.wanted.end()) continue;
        ++num_found;
        EXPECT_EQ(kernel.toolchain == "second", wanted->second.device_type == kExtDevType) << name;
      }
    }
  }
  return num_found;
}

std::vector<Tensor> Flattened(const Value& value) {
  if (value.kind() == Value::Kind::kTensor) return {value.tensor()};
  std::vector<Tensor> tensors;
  for (const Value& field : value.fields()) {
    for (const Tensor& tensor : Flattened(field)) tensors.push_back(tensor);
  }
  return tensors;
}

std::vector<Tensor> RunFile(const std::filesystem::path& path, const std::vector<Tensor>& inputs) {
  if (vm::Executable::IsBytecode(path)) {
    return Flattened(
        vm::Machine(vm::Executable::Load(path)).Invoke("main", std::vector<Value>(inputs.begin(), inputs.end())));
  }
  const Executable executable = Executable::Load(path);
  ExecutionInstance instance(executable);
  for (size_t i = 0; i < inputs.size(); ++i) instance.SetInput(i, inputs[i]);
  instance.Run();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < executable.outputs().size(); ++i) outputs.push_back(instance.Output(i));
  return outputs;
}

void AddToolchains() {
  AddBuiltins();
  AddSecondDevice();
  if (ToolchainRegistry::Global().Find("second") != nullptr) return;
  ToolchainRegistry::Global().Add(std::make_unique<TextToolchain>("second", kExtDevType));
}

/// Candidates and copies are timed where their operands are, and results found right.
TEST(CompiledDevicesTest, CostsAreMeasuredInEachMemory) {
  AddToolchains();
  const TemporaryFolder folder;
  RandomSource random(1);
  CompileOptions options = OptionsFor(random, folder);
  options.estimator = "measure";
  const IRModule module = ParseModule(
      "def @main(%x: Tensor[(8, 24), float32]) {\n"
      "  nn.softmax(on_device(nn.relu(tanh(%x)), device_type=12))\n"
      "}",
      "m");
  const CompileReport report = CompileModule(module, "m", options);
  std::string failures;
  for (const auto& [kind, failure] : report.failures) failures += kind + ": " + failure.second + "\n";
  EXPECT_EQ(failures, "");
  const ExecutionPlan plan = Executable::Load(options.output).plan();
  std::map<std::string, std::string> toolchain_of;
  for (const ExecutionPlan::KernelEntry& kernel : plan.kernels) toolchain_of[kernel.label] = kernel.toolchain;
  EXPECT_TRUE(toolchain_of.contains("nn.relu") || toolchain_of.contains("tanh+nn.relu"));
  EXPECT_EQ(toolchain_of["nn.softmax"], "native");
  EXPECT_FALSE(plan.device_arena_bytes.empty());
}

TEST(CompiledDevicesTest, ProgramsRunWhereTheyAreWanted) {
  AddToolchains();
  const TemporaryFolder folder;
  int num_compiled = 0, num_found = 0, num_mixed = 0, num_programs = 0;
  const uint64_t count = Setting("COLLAGE_PROPERTY_MODULES", 12);
  ForRandomSeeds(count, [&](uint64_t seed) {
    RandomSource random(seed + 2'000'000);
    const bool branches = random.OneIn(3);
    const PlacedFunction placed = MakePlacedFunction(2 + random.Below(6), random, branches);
    const CompileOptions options = OptionsFor(random, folder);
    const IRModule module = IRModule::FromFunction(placed.function);
    try {
      CompileModule(module, "m", options);
    } catch (const Error& error) {
      // Constraints may contradict each other, or what toolchains can do.
      if (error.message().find("a value must be on") != std::string::npos) return;
      if (error.message().find("'nn.softmax'") != std::string::npos) return;
      throw;
    }
    std::set<std::string> used;
    num_found += CheckPlaces(options.output, placed, used);
    const std::vector<Tensor> inputs = SampleInputs(placed.function, Draw::kUnit);
    const std::vector<Tensor> results = RunFile(options.output, inputs);
    const std::vector<Tensor> expected =
        Flattened(Interpret(module, "main", std::vector<Value>(inputs.begin(), inputs.end())));
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(Compare(results[i], expected[i], ToleranceFor(expected[i])).difference, "") << PrintModule(module);
    }
    ++num_compiled;
    num_mixed += used.size() > 1 ? 1 : 0;
    num_programs += branches ? 1 : 0;
  });
  RecordProperty("compiled", num_compiled);
  RecordProperty("programs", num_programs);
  RecordProperty("placed", num_found);
  EXPECT_GT(num_compiled, static_cast<int>(count) / 2);
  EXPECT_GT(num_programs, num_compiled / 8);
  EXPECT_GT(num_mixed * 8, num_compiled) << "costs never favour both devices";
  EXPECT_GT(num_found, num_compiled);
}

}  // namespace
}  // namespace collage
