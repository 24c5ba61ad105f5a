// bytecode_test.cc: bytecode as text and in files; files that are damaged or of another format.
#include "bytecode/bytecode.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ir/eval/interpreter.h"
#include "support/file.h"
#include "unit/bytecode/run_text.h"
#include "unit/ir/programs.h"
#include "unit/runtime/executable_bytes.h"
#include "unit/runtime/test_plan.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(BytecodeTest, BytecodeReadsAsText) {
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

TEST(BytecodeTest, SavedProgramsDoTheSame) {
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

TEST(BytecodeTest, DamagedProgramsAreRefused) {
  const std::string good = CompileText(std::string(kList) + R"(
    def @main(%c: bool, %l: List[float32]) {
      let %f = fn (%x: float32) { if (%c) { exp(%x) } else { %x } };
      match (%l) { Cons(%h, _) => %f(%h), Nil => 2f }
    })")
                               .Serialize();
  const auto load = [](const std::string& bytes) { vm::Executable::Deserialize(bytes, "p"); };
  ExpectError([&] { load("nonsense"); }, ErrorCategory::kCorrupt, "p: error: this is no bytecode");
  ExpectError([&] { load(good.substr(0, 9)); }, ErrorCategory::kCorrupt, "the bytecode is truncated");
  ExpectError([&] { load(good.substr(0, good.size() - 20)); }, ErrorCategory::kCorrupt, "the bytecode is truncated");
  std::string flipped = good;
  const auto begin = PlanOf(good).at("bytecode").at(0).get<size_t>();
  flipped[begin] = static_cast<char>(flipped[begin] ^ 1);
  ExpectError([&] { load(flipped); }, ErrorCategory::kCorrupt,
              "p: error: the bytecode is damaged: its instructions have a wrong checksum");
  // With checksums that fit, any change is refused or gives a program that is safe to have.
  const std::string bytecode = BytecodeOf(good);
  size_t refused = 0;
  for (size_t at = 0; at < bytecode.size(); ++at) {
    std::string bad = bytecode;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    try {
      load(WithBytecode(good, bad));
    } catch (const Error& error) {
      EXPECT_EQ(ToString(error.category()), "corrupt") << error.Format();
      ++refused;
    }
  }
  EXPECT_GT(refused, bytecode.size() / 2);
}

TEST(BytecodeTest, ProgramsOfOtherFormatsAreUnavailable) {
  const std::string good = CompileText("def @main() { 1 }").Serialize();
  std::string other = good;
  other[kVersionAt] = 1;
  ExpectError([&] { vm::Executable::Deserialize(other, "p"); }, ErrorCategory::kCorrupt,
              "the bytecode is damaged: its header has a wrong checksum");
  ExpectError([&] { vm::Executable::Deserialize(WithHeaderSealed(other), "p"); }, ErrorCategory::kUnavailable,
              "the bytecode has format 1, this Collage reads 5");
  ExpectError([&] { vm::Executable::Deserialize(std::string_view("CLGVM\0\0\3rest", 12), "p"); },
              ErrorCategory::kUnavailable, "the bytecode has format 3, this Collage reads 5");
}

/// A program of two kernels that give the same large constant, each its own copy of it.
vm::Executable WithEqualConstants(int64_t elements) {
  const Type type = TensorType(Shape{elements}, kFloat32);
  vm::Program program = CompileText("def @main() { 1 }").program();
  for (int i = 0; i < 2; ++i) {
    const Tensor constant = Tensor::Empty({elements}, kFloat32);
    for (int64_t at = 0; at < elements; ++at) constant.Set(at, static_cast<double>(at));
    PlanWriter writer;
    writer.Move(ExecutionPlan::Step::kCopy, writer.AddConstant(constant), writer.AddOutput("y", {elements}));
    program.kernels.push_back({"kernel", Executable::FromPlan(writer.plan), type});
    program.constants.push_back(constant);
  }
  return vm::Executable(std::make_shared<const vm::Program>(std::move(program)));
}

TEST(BytecodeTest, EqualConstantsAreStoredOnceAndMappedOnce) {
  constexpr int64_t kElements = 100'000;
  const TemporaryFolder folder;
  WithEqualConstants(kElements).Save(folder / "p.clg");
  EXPECT_LT(std::filesystem::file_size(folder / "p.clg"), kElements * sizeof(float) + 20'000);
  const vm::Executable loaded = vm::Executable::Load(folder / "p.clg");
  const vm::Program& program = loaded.program();
  ASSERT_EQ(program.kernels.size(), 2u);
  const Tensor& first = program.kernels[0].executable.plan().constants.at(0);
  EXPECT_EQ(first.At(kElements - 1), kElements - 1);
  EXPECT_EQ(program.kernels[1].executable.plan().constants.at(0).raw(), first.raw());
  EXPECT_EQ(program.constants.back().raw(), first.raw());
}

TEST(BytecodeTest, DamagedConstantsAreFoundByTheirFirstUser) {
  std::string bytes = WithEqualConstants(1000).Serialize();
  const auto place = PlanOf(bytes).at("kernels").at(1).at("constants").at(0).at("place");
  bytes[place.at(0).get<size_t>() + 10] ^= 1;
  const vm::Executable loaded = vm::Executable::Deserialize(bytes, "p");
  const char* damaged = "p: error: the bytecode is damaged: a constant has a wrong checksum";
  ExpectError([&] { loaded.CheckConstants(); }, ErrorCategory::kCorrupt, damaged);
  ExpectError([&] { vm::Machine{loaded}; }, ErrorCategory::kCorrupt, damaged);
  ExpectError([&] { ExecutionInstance{loaded.program().kernels[0].executable}; }, ErrorCategory::kCorrupt,
              "p: error: the executable is damaged: constant 0 has a wrong checksum");
  ExpectError([&] { loaded.Serialize(); }, ErrorCategory::kCorrupt, "a wrong checksum");
}

}  // namespace
}  // namespace collage
