#include "collage/vm/vm.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "collage/ir/text.h"
#include "collage/runtime/kernel.h"
#include "ir/eval/evaluate.h"
#include "ir/eval/interpreter.h"
#include "support/checksum.h"
#include "support/file.h"
#include "unit/ir/deep.h"
#include "unit/ir/programs.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

Tensor Scalar(double value) { return Scalar(value, kInt32); }

vm::Executable CompileText(const std::string& text) { return vm::Compile(ParseModule(text, "t.relay")); }

Value RunText(const std::string& text, const std::vector<Value>& args = {}, const vm::RunOptions& options = {}) {
  return vm::Machine(CompileText(text)).Invoke("main", args, options);
}

std::string Shown(const std::string& text, const std::vector<Value>& args = {}) {
  return ToString(RunText(text, args));
}

/// Memory of this process.
int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// ---- bytecode ----

TEST(VmTest, BytecodeReadsAsText) {
  EXPECT_EQ(CompileText(std::string(kList) + R"(
    def @main(%c: bool, %l: List[float32]) {
      let %f = fn (%x: float32) { if (%c) { nn.leaky_relu(%x, alpha=0.5) } else { @main(True, Nil) } };
      match (%l) { Cons(%h, _) => %f(%h), Nil => 2f }
    })")
                .Disassemble(),
            R"(@main(%0, %1) registers 5
   0: %2 = closure @main/fn1(%0)
   1: jump_unless_is Cons(%1) -> 4
   2: %3 = field .0(%1)
   3: tail_call(%2, %3)
   4: jump_unless_is Nil(%1) -> 7
   5: %4 = constant 2:float32
   6: return(%4)
   7: no_clause(%1)

@main/fn1(%0) captured %1 registers 6
   0: jump_unless(%1) -> 3
   1: %2 = op nn.leaky_relu(%0) {alpha=0.5f}
   2: return(%2)
   3: %3 = closure @main()
   4: %4 = constant 1:bool
   5: %5 = data Nil()
   6: tail_call(%3, %4, %5)
)");
}

// ---- the language ----

TEST(VmTest, ClosuresDataAndRecursion) {
  EXPECT_EQ(Shown(std::string(kList) + R"(
    def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
      match (%l) { Nil => Nil, Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)) }
    }
    def @main(%x: int32) {
      let %power = fn (%b: int32, %n: int32) -> int32 { if (%n == 0) { 1 } else { %b * %power(%b, %n - 1) } };
      @map(fn (%n: int32) { %power(%x, %n) }, Cons(0, Cons(1, Cons(2, Nil))))
    })",
                  {Scalar(7)}),
            "Cons(1, Cons(7, Cons(49, Nil)))");
}

TEST(VmTest, ConstructorsAreFunctions) {
  EXPECT_EQ(Shown(std::string(kList) + R"(
    def @apply[A, B](%f: fn (A, List[A]) -> B, %a: A) -> B { %f(%a, Nil) }
    def @main() { @apply(Cons, 1) })"),
            "Cons(1, Nil)");
}

TEST(VmTest, ReferencesKeepTheOrderOfStatements) { EXPECT_EQ(Shown(kWritesInOrder), "(11, 111)"); }

TEST(VmTest, SharedNodesAreEvaluatedOncePerCallInWhicheverBranchIsTaken) {
  const std::string text = R"(def @main(%c: bool) {
    let %count = ref(0);
    let %tick = fn () -> int32 { let %n = ref_read(%count) + 1; ref_write(%count, %n); %n };
    %0 = %tick();
    let %a = if (%c) { %0 } else { 0 };
    let %b = if (%c) { 0 } else { %0 * 10 };
    (%a, %b, %0, ref_read(%count))
  })";
  EXPECT_EQ(Shown(text, {Scalar(1, kBool)}), "(1, 0, 1, 1)");
  EXPECT_EQ(Shown(text, {Scalar(0, kBool)}), "(0, 10, 1, 1)");
}

TEST(VmTest, ShapesAreFoundWhenTheyAreNotKnownBefore) {
  // Doubles the rows until there are enough.
  const std::string text = R"(
    def @main(%x: Tensor[(?, 2), float32], %n: int32) -> Tensor[(?, 2), float32] {
      if (%n == 0) { %x } else { @main(concatenate((%x, %x), axis=0), %n - 1) }
    })";
  EXPECT_EQ(RunText(text, {Tensor::Zeros({3, 2}, kFloat32), Scalar(4)}).tensor().shape(), (Shape{48, 2}));
}

TEST(VmTest, TailCallsRunInConstantSpaceAndDeepRecursionIsAnError) {
  const std::string loop =
      "def @main(%i: int32, %s: int32) -> int32 { if (%i == 0) { %s } else { @main(%i - 1, %s + 2) } }";
  const int64_t before = ResidentBytes();
  EXPECT_EQ(ToString(RunText(loop, {Scalar(1000000), Scalar(0)}, {.max_depth = 2})), "2000000");
#ifndef __SANITIZE_ADDRESS__  // which keeps what is freed
  EXPECT_LT(ResidentBytes() - before, 20 << 20) << "a turn of the loop must leave nothing behind";
#else
  EXPECT_GT(before, 0);
#endif
  const std::string deep = "def @main(%i: int32) -> int32 { if (%i == 0) { 0 } else { 1 + @main(%i - 1) } }";
  EXPECT_EQ(Shown(deep, {Scalar(50000)}), "50000");
  ExpectError([&] { RunText(deep, {Scalar(5000)}, {.max_depth = 1000}); }, ErrorCategory::kResource,
              "calls nest more than 1000 deep");
}

TEST(VmTest, LongChainsCompileWithoutRecursion) {
  const vm::Executable executable = vm::Compile(IRModule::FromFunction(DeepChain()));
  const Tensor input = Tensor::Of<float>({4}, kFloat32, std::vector<float>{-1, 0, 1, 2});
  const Value result = vm::Machine(executable).Invoke("main", {input});
  EXPECT_EQ(ToString(result), "[0, 0, 1, 2]");
}

TEST(VmTest, ErrorsSayWhatAndWhere) {
  const std::string add = "def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) {\n  add(%x, %y) }";
  const Value two = Tensor::Zeros({2}, kFloat32);
  const Value three = Tensor::Zeros({3}, kFloat32);
  ExpectError([&] { RunText(add, {two, three}); }, ErrorCategory::kInput, "t.relay:2:3: error: 'add'");
  ExpectError([&] { RunText(add, {two}); }, ErrorCategory::kInput, "'@main' has 2 parameters, got 1 arguments");
  ExpectError(
      [&] {
        RunText(add, {two, Scalar(1)});
      },
      ErrorCategory::kInput, "parameter 1 wants Tensor[(?), float32], got int32");
  ExpectError([&] { vm::Machine(CompileText(add)).Invoke("man", {}); }, ErrorCategory::kInput, "no function '@man'");
  ExpectError(
      [] {
        RunText(std::string(kList) + "def @main() { let %l: List[int32] = Nil; match? (%l) { Cons(%x, _) => %x } }");
      },
      ErrorCategory::kInput, "no clause of 'match' fits Nil");
}

// ---- kernels ----

/// Compiles a partition to its own text, which its kernel evaluates, and counts.
class TextToolchain : public Toolchain {
 public:
  std::string name() const override { return "text"; }
  std::string description() const override { return "kernels are Relay text"; }
  Availability Probe() const override { return {.available = true, .version = "1"}; }
  int priority() const override { return 1; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    ++num_compiled;
    const std::string text = PrintModule(IRModule::FromFunction(request.function));
    CompiledPartition compiled;
    compiled.loader = "text";
    for (char c : text) compiled.blob.push_back(static_cast<std::byte>(c));
    return compiled;
  }
  static inline int num_compiled = 0;
};

class TextKernel : public Kernel {
 public:
  explicit TextKernel(Function function) : function_(std::move(function)) {}
  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    inputs_.assign(inputs.begin(), inputs.end());
    outputs_.assign(outputs.begin(), outputs.end());
  }
  void Run() override {
    ++num_runs;
    std::vector<Tensor> args;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorTypeNode* type = AsTensorType(function_->params()[i]->type_annotation());
      args.push_back(Tensor::View(type->static_shape(), type->dtype(), inputs_[i], nullptr));
    }
    const std::vector<Tensor> results = Evaluate(function_, args);
    for (size_t i = 0; i < results.size(); ++i) std::memcpy(outputs_[i], results[i].raw(), results[i].size_bytes());
  }
  static inline int num_runs = 0;

 private:
  Function function_;
  std::vector<void*> inputs_;
  std::vector<void*> outputs_;
};

class TextLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    const std::string text(reinterpret_cast<const char*>(image.blob.data()), image.blob.size());
    return std::make_unique<TextKernel>(ParseModule(text).main());
  }
};

TEST(VmTest, PrimitiveFunctionsBecomeKernelsOfTheirToolchain) {
  AddKernelLoader("text", std::make_unique<TextLoader>());
  TextToolchain::num_compiled = TextKernel::num_runs = 0;
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
  EXPECT_EQ(TextKernel::num_runs, 4);
  const vm::Executable loaded = vm::Executable::Deserialize(executable.Serialize());
  EXPECT_TRUE(ValuesEqual(expected, vm::Machine(loaded).Invoke("main", {x, Scalar(3)}), 1e-6));
  EXPECT_TRUE(ValuesEqual(expected, vm::Machine(vm::Compile(module)).Invoke("main", {x, Scalar(3)}), 1e-6));
  EXPECT_EQ(TextKernel::num_runs, 8) << "without toolchains there are no kernels";
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

// ---- files ----

TEST(VmTest, SavedProgramsDoTheSame) {
  const TemporaryFolder folder;
  const vm::Executable executable = CompileText(std::string(kList) + R"(
    def @id[A](%a: A) -> A { %a }
    def @main(%l: List[float32], %p: (int32, Tensor[(?), float32])) {
      let %w = nn.pad(%p.1, 1f, pad_width=[[1, 2]], pad_mode="constant");
      match (%l) { Cons(%h, _) => @id((%h, %w, %p.0)), Nil => (0f, %w, 1) }
    })");
  executable.Save(folder.path() / "program.clgvm");
  const vm::Executable loaded = vm::Executable::Load(folder.path() / "program.clgvm");
  EXPECT_EQ(loaded.Disassemble(), executable.Disassemble());
  EXPECT_EQ(loaded.Serialize(), executable.Serialize());
  const Value input = Value::Tuple({Scalar(3), Tensor::Zeros({2}, kFloat32)});
  const Value list = Interpret(ParseModule(std::string(kList) + "def @main() { Cons(5f, Nil) }"), "main", {});
  EXPECT_EQ(ToString(vm::Machine(loaded).Invoke("main", {list, input})), "(5, [1, 0, 0, 1, 1], 3)");
  ExpectError(
      [&] {
        vm::Machine(loaded).Invoke("main", {input, input});
      },
      ErrorCategory::kInput, "wants List[float32]");
}

TEST(VmTest, DamagedProgramsAreRefused) {
  const std::string good = CompileText(std::string(kList) + R"(
    def @main(%c: bool, %l: List[float32]) {
      let %f = fn (%x: float32) { if (%c) { exp(%x) } else { %x } };
      match (%l) { Cons(%h, _) => %f(%h), Nil => 2f }
    })")
                               .Serialize();
  const auto load = [](const std::string& bytes) { vm::Executable::Deserialize(bytes, "p"); };
  ExpectError([&] { load("nonsense"); }, ErrorCategory::kCorrupt, "p: error: this is no bytecode");
  ExpectError([&] { load(good.substr(0, 9)); }, ErrorCategory::kCorrupt, "the bytecode is truncated");
  ExpectError([&] { load(good.substr(0, good.size() - 20)); }, ErrorCategory::kCorrupt, "the checksum does not fit");
  // With a checksum that fits, any change is refused or gives a program that is safe to have.
  size_t refused = 0;
  for (size_t at = 8; at + 8 < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    const auto body = bad.size() - 8;
    const uint64_t checksum = Checksum(bad.data(), body);
    std::memcpy(bad.data() + body, &checksum, sizeof checksum);
    try {
      load(bad);
    } catch (const Error& error) {
      EXPECT_EQ(ToString(error.category()), "corrupt") << error.Format();
      ++refused;
    }
  }
  EXPECT_GT(refused, good.size() / 2);
}

TEST(VmTest, ProgramsOfOtherFormatsAreUnavailable) {
  const std::string good = CompileText("def @main() { 1 }").Serialize();
  std::string other = good;
  other[7] = 1;
  ExpectError([&] { vm::Executable::Deserialize(other, "p"); }, ErrorCategory::kCorrupt, "the checksum does not fit");
  other.pop_back();
  ExpectError([&] { vm::Executable::Deserialize(other, "p"); }, ErrorCategory::kUnavailable,
              "the bytecode has format 1, this Collage reads 3");
}

TEST(VmTest, ProgramsThatDoNotEndCanBeStopped) {
  const vm::Executable executable = CompileText("def @main(%n: int32) -> int32 { @main(%n) }");
  ExpectError([&] { vm::Machine(executable).Invoke("main", {Scalar(1)}, {.max_instructions = 1000}); },
              ErrorCategory::kResource, "the program takes more than 1000 instructions");
}

/// As bytecode can make them that no type describes.
TEST(VmTest, TuplesThatNestDeeperThanTypesHaveNone) {
  Value value = Scalar(1);
  for (int i = 0; i < 500'000; ++i) value = Value::Tuple({std::move(value)});
  EXPECT_EQ(TypeOf(value), nullptr);
  ExpectError([&] { ApplyOp(GetOp("negative")->def(), {}, {value}); }, ErrorCategory::kInput, "is called with");
}

}  // namespace
}  // namespace collage
