// gpu_test.h: models that are compiled for a GPU, written, and run. A case compiles before it runs anything: a process
// that has used the driver cannot fork workers that do.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda_driver/toolkit.h"
#include "collage/compile.h"
#include "collage/ir/text.h"
#include "collage/runtime/executable.h"
#include "collage/runtime/kernel.h"
#include "driver/builtins.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/sample_inputs.h"
#include "runtime/compare.h"
#include "support/file.h"

namespace collage {

/// Assembles `ptx`. Returns the assembler's words, none without one.
inline std::string Assemble(const std::string& ptx, const std::string& architecture, const TemporaryFolder& folder) {
  const std::string program = cuda_driver::ToolkitFolder() / "bin/ptxas";
  if (!std::filesystem::exists(program)) return "";
  const std::string file = (folder.path() / "kernel.ptx").string();
  WriteFile(file, {ptx.data(), ptx.size()});
  const std::string command = program + " -v -arch=" + architecture + " -o " + file + ".cubin " + file + " 2>&1";
  std::string said;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) said += part.data();
  EXPECT_EQ(pclose(pipe), 0) << said;
  return said;
}

/// `toolchain` with the options `told`.
inline std::unique_ptr<const Toolchain> Configured(const Toolchain& toolchain,
                                                   const std::map<std::string, std::string>& told) {
  Attrs options;
  for (const AttrField& option : toolchain.Options()) options.Set(option.name, option.default_value);
  for (const auto& [name, value] : told) options.Set(name, value);
  return toolchain.WithOptions(options);
}

/// Loads a kernel of `compiled` and returns the error.
inline Error LoadingError(const CompiledPartition& compiled) {
  try {
    GetKernelLoader(compiled.loader).Load({compiled.blob, compiled.constants, 1});
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCategory::kInternal, "it was loaded");
}

class GpuTest : public testing::Test {
 protected:
  explicit GpuTest(std::string toolchain) : toolchain_(std::move(toolchain)) {}

  void SetUp() override {
    AddBuiltins();
    const Availability availability = ToolchainRegistry::Global().Find(toolchain_)->Probe();
    if (!availability.available) GTEST_SKIP() << availability.reason;
  }

  /// The processor and `target` are to compute.
  CompileOptions Options(const std::string& name, const std::string& target) const {
    CompileOptions options;
    options.output = folder_.path() / (name + ".clg");
    options.database = (folder_.path() / "tuning.db").string();
    options.num_threads = 1;
    options.targets = {"llvm", target};
    return options;
  }

  static IRModule Module(const std::string& text) { return ParseModule(text, "m.relay"); }

  /// Failures of candidates, a line each.
  static std::string FailuresOf(const CompileReport& report) {
    std::string text;
    for (const auto& [kind, failure] : report.failures) text += kind + ": " + failure.second + "\n";
    return text;
  }

  static const Contender* Find(const CompileReport& report, const std::string& name) {
    for (const Contender& one : report.contenders) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

  /// Runs the file and compares what it gives with the reference evaluation: in the first run, in the second, which
  /// records what the GPU does, and in the third, which repeats that.
  static void ExpectAgrees(const IRModule& module, const CompileOptions& options,
                           std::optional<DataType> computed_in = std::nullopt) {
    const std::vector<Tensor> inputs = SampleInputs(module.main(), Draw::kUnit, {});
    const Executable executable = Executable::Load(options.output);
    ExecutionInstance instance(executable);
    for (size_t i = 0; i < inputs.size(); ++i) instance.SetInput(i, inputs[i]);
    const std::vector<Tensor> expected = Evaluate(module.main(), inputs);
    for (int run = 1; run <= 3; ++run) {
      for (size_t i = 0; i < expected.size(); ++i) {
        instance.SetOutput(i, Tensor::Zeros(expected[i].shape(), expected[i].dtype()));
      }
      instance.Run();
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(Compare(instance.Output(i), expected[i], ToleranceFor(expected[i], computed_in)).agrees)
            << options.output.filename() << ", run " << run << ", result " << i;
      }
    }
  }

  TemporaryFolder folder_;

 private:
  std::string toolchain_;
};

}  // namespace collage
