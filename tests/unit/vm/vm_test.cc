// vm_test.cc: partitions of a program become kernels of their toolchain.
#include "collage/vm/vm.h"

#include <gtest/gtest.h>

#include <cstring>

#include "collage/ir/text.h"
#include "collage/runtime/kernel.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/interpreter.h"
#include "unit/bytecode/run_text.h"
#include "unit/vm/text_kernel.h"

namespace collage {
namespace {

/// Compiles a partition to its own text, which its kernel evaluates, and counts.
class TextToolchain : public Toolchain {
 public:
  std::string name() const override { return "text"; }
  std::string description() const override { return "kernels are Relay text"; }
  Availability Probe() const override { return {.available = true, .version = "1"}; }
  int priority() const override { return 1; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    ++num_compiled;
    return CompileToText(request, "text");
  }
  static inline int num_compiled = 0;
};

/// Counts its runs.
class CountingKernel : public TextKernel {
 public:
  using TextKernel::TextKernel;
  void Run() override {
    ++num_runs;
    TextKernel::Run();
  }
  static inline int num_runs = 0;
};

class TextLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override { return std::make_unique<CountingKernel>(image); }
};

TEST(VmTest, PrimitiveFunctionsBecomeKernelsOfTheirToolchain) {
  AddKernelLoader("text", std::make_unique<TextLoader>());
  TextToolchain::num_compiled = CountingKernel::num_runs = 0;
  ToolchainRegistry toolchains;
  toolchains.Add(std::make_unique<TextToolchain>());
  const IRModule module = ParseModule(R"(
    def @main(%x: Tensor[(4), float32], %n: int32) -> (Tensor[(4), float32], Tensor[(1), float32]) {
      %0 = fn (%a: Tensor[(4), float32], Primitive=1, Compiler="text", global_symbol="step") {
        %1 = tanh(%a);
        (%1, sum(%1, keepdims=True))
      };
      let %y = %0(%x);
      if (%n == 0) { %y } else { @main(%y.0, %n - 1) }
    })");
  const vm::Executable executable = vm::Compile(module, {.toolchains = &toolchains});
  EXPECT_EQ(TextToolchain::num_compiled, 1);
  EXPECT_NE(executable.Disassemble().find("= kernel step(%0)"), std::string::npos) << executable.Disassemble();
  const Tensor x = Tensor::Of<float>({4}, kFloat32, std::vector<float>{-1, 0, 1, 2});
  const Value expected = Interpret(module, "main", {x, Scalar(3)});
  EXPECT_TRUE(ValuesEqual(expected, vm::Machine(executable).Invoke("main", {x, Scalar(3)}), 1e-6));
  EXPECT_EQ(CountingKernel::num_runs, 4);
  const vm::Executable loaded = vm::Executable::Deserialize(executable.Serialize());
  EXPECT_TRUE(ValuesEqual(expected, vm::Machine(loaded).Invoke("main", {x, Scalar(3)}), 1e-6));
  EXPECT_TRUE(ValuesEqual(expected, vm::Machine(vm::Compile(module)).Invoke("main", {x, Scalar(3)}), 1e-6));
  EXPECT_EQ(CountingKernel::num_runs, 8) << "without toolchains there are no kernels";
}

/// Takes what has channels with these last only. What it is asked is element-wise: any order of the elements will do.
class ChannelsLastToolchain : public TextToolchain {
 public:
  std::string name() const override { return "last"; }
  std::vector<BoundaryLayouts> Layouts(const Function&, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    return {ChannelsLastLayouts(eligible_inputs, eligible_outputs)};
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    seen = request.layouts;
    Result<CompiledPartition> compiled = TextToolchain::RelayToRuntime(request);
    compiled->loader = "last";
    return compiled;
  }
  static inline BoundaryLayouts seen;
};

TEST(VmTest, KernelsHaveTheLayoutsThatTheirToolchainTakes) {
  AddKernelLoader("last", std::make_unique<TextLoader>());
  ToolchainRegistry toolchains;
  toolchains.Add(std::make_unique<ChannelsLastToolchain>());
  const IRModule module = ParseModule(R"(
    def @main(%x: Tensor[(1, 3, 2, 2), float32], %y: Tensor[(4), float32]) {
      %0 = fn (%a: Tensor[(1, 3, 2, 2), float32], %b: Tensor[(4), float32], Primitive=1, Compiler="last") {
        (nn.relu(%a), tanh(%b))
      };
      %0(%x, %y)
    })");
  const vm::Executable executable = vm::Compile(module, {.toolchains = &toolchains});
  const std::vector<Layout> last_and_plain{Layout::kChannelsLast, Layout::kPlain};
  EXPECT_EQ(ChannelsLastToolchain::seen, (BoundaryLayouts{last_and_plain, last_and_plain}));
  std::vector<float> values(12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 5;
  const Tensor x = Tensor::Of<float>({1, 3, 2, 2}, kFloat32, values);
  const Tensor y = Tensor::Of<float>({4}, kFloat32, std::vector<float>{-1, 0, 1, 2});
  EXPECT_TRUE(ValuesEqual(Interpret(module, "main", {x, y}), vm::Machine(executable).Invoke("main", {x, y}), 1e-6));
}

}  // namespace
}  // namespace collage
