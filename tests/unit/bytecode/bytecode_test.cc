// bytecode_test.cc: bytecode as text and in files; files that are damaged or of another format.
#include <gtest/gtest.h>

#include <cstring>

#include "ir/eval/interpreter.h"
#include "support/checksum.h"
#include "support/file.h"
#include "unit/bytecode/run_text.h"
#include "unit/ir/programs.h"
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

TEST(BytecodeTest, ProgramsOfOtherFormatsAreUnavailable) {
  const std::string good = CompileText("def @main() { 1 }").Serialize();
  std::string other = good;
  other[7] = 1;
  ExpectError([&] { vm::Executable::Deserialize(other, "p"); }, ErrorCategory::kCorrupt, "the checksum does not fit");
  other.pop_back();
  ExpectError([&] { vm::Executable::Deserialize(other, "p"); }, ErrorCategory::kUnavailable,
              "the bytecode has format 1, this Collage reads 3");
}

}  // namespace
}  // namespace collage
