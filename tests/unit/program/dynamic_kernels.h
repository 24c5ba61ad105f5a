// dynamic_kernels.h: programs whose shapes a run knows, by native kernels and by reference evaluation.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "backends/builtin_toolchains.h"
#include "bytecode/bytecode.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/thread_pool.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"
#include "program/regions.h"
#include "runtime/random_inputs.h"

namespace collage {

inline constexpr double kTolerance = 2e-4;

inline const Toolchain& Native() {
  if (ToolchainRegistry::Global().All().empty()) AddBuiltinToolchains(ToolchainRegistry::Global());
  return *ToolchainRegistry::Global().Native();
}

class DynamicKernelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Native().Probe().available) GTEST_SKIP() << Native().Probe().reason;
  }

  /// `text` with its operators on dynamic shapes in kernels, through a file's bytes.
  static vm::Executable Compiled(const IRModule& module, int num_threads = 1) {
    const ProgramRegions program =
        FindRegions(PrepareForPartitioning(module), /*few_elements=*/16,
                    {[](const CallNode& call) { return Native().SupportsDynamicShapes(call).ok(); },
                     [](const CallNode& call) { return Native().SupportsCall(call).ok(); }});
    vm::CompileOptions options;
    options.for_dynamic_shapes = &Native();
    options.num_threads = num_threads;
    return vm::Executable::Deserialize(vm::Compile(program.module, options).Serialize());
  }

  static std::vector<Value> Arguments(const IRModule& module, const std::vector<Shape>& shapes, uint64_t seed) {
    std::vector<Value> args;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Tensor tensor =
          Tensor::Empty(shapes[i], AsTensorType(module.main()->params()[i]->type_annotation())->dtype());
      FillRandom(tensor, seed + i, tensor.dtype().is_floating() ? -2 : 0, tensor.dtype().is_floating() ? 2 : 4);
      args.emplace_back(tensor);
    }
    return args;
  }

  /// Runs `text` on arguments of all `shapes` by one executable of `kernels` kernels that leaves the operators `left`.
  static void Check(const std::string& text, const std::vector<std::vector<Shape>>& shapes, int kernels = 1,
                    const std::vector<std::string>& left = {}) {
    Check(ParseModule("#[version = \"0.0.5\"]\n" + text, "t.relay"), shapes, kernels, left);
  }
  static void Check(const IRModule& module, const std::vector<std::vector<Shape>>& shapes, int kernels = 1,
                    const std::vector<std::string>& left = {}) {
    for (const int num_threads : {1, 2}) {
      const vm::Executable executable = Compiled(module, num_threads);
      const std::string code = executable.Disassemble();
      EXPECT_EQ(Count(code, "dynamic_kernel"), kernels) << code;
      EXPECT_EQ(Count(code, "= op "), static_cast<int>(left.size())) << code;
      for (const std::string& name : left) EXPECT_NE(code.find("op " + name), std::string::npos) << code;
      vm::Machine machine(executable);
      for (size_t i = 0; i < shapes.size(); ++i) {
        const std::vector<Value> args = Arguments(module, shapes[i], 7 * i + 1);
        const Value expected = Interpret(module, "main", args);
        for (int run = 0; run < 3; ++run) {  // the second one has the sizes planned
          const Value actual = machine.Invoke("main", args);
          EXPECT_TRUE(ValuesEqual(expected, actual, kTolerance))
              << i << ": " << ToString(expected) << " became " << ToString(actual) << " in run " << run
              << PrintModule(module) << code;
        }
      }
    }
    SetNumThreads(1);
  }

  static int Count(const std::string& text, const std::string& what) {
    int count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  }

  static std::vector<std::vector<Shape>> ForEach(const std::vector<int64_t>& sizes,
                                                 const std::function<std::vector<Shape>(int64_t)>& shapes) {
    std::vector<std::vector<Shape>> all;
    for (const int64_t size : sizes) all.push_back(shapes(size));
    return all;
  }
};

}  // namespace collage
