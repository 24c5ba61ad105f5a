// machine_test.cc: what programs compute, and what stops them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "collage/ir/op.h"
#include "ir/eval/interpreter.h"
#include "unit/bytecode/run_text.h"
#include "unit/ir/deep.h"
#include "unit/ir/programs.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

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

TEST(MachineTest, ClosuresDataAndRecursion) {
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

TEST(MachineTest, ConstructorsAreFunctions) {
  EXPECT_EQ(Shown(std::string(kList) + R"(
    def @apply[A, B](%f: fn (A, List[A]) -> B, %a: A) -> B { %f(%a, Nil) }
    def @main() { @apply(Cons, 1) })"),
            "Cons(1, Nil)");
}

TEST(MachineTest, ReferencesKeepTheOrderOfStatements) { EXPECT_EQ(Shown(kWritesInOrder), "(11, 111)"); }

TEST(MachineTest, SharedNodesAreEvaluatedOncePerCallInWhicheverBranchIsTaken) {
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

TEST(MachineTest, ShapesAreFoundWhenTheyAreNotKnownBefore) {
  // Doubles the rows until there are enough.
  const std::string text = R"(
    def @main(%x: Tensor[(?, 2), float32], %n: int32) -> Tensor[(?, 2), float32] {
      if (%n == 0) { %x } else { @main(concatenate((%x, %x), axis=0), %n - 1) }
    })";
  EXPECT_EQ(RunText(text, {Tensor::Zeros({3, 2}, kFloat32), Scalar(4)}).tensor().shape(), (Shape{48, 2}));
}

TEST(MachineTest, TailCallsRunInConstantSpaceAndDeepRecursionIsAnError) {
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

TEST(MachineTest, LongChainsCompileWithoutRecursion) {
  const vm::Executable executable = vm::Compile(IRModule::FromFunction(DeepChain()));
  const Tensor input = Tensor::Of<float>({4}, kFloat32, std::vector<float>{-1, 0, 1, 2});
  const Value result = vm::Machine(executable).Invoke("main", {input});
  EXPECT_EQ(ToString(result), "[0, 0, 1, 2]");
}

TEST(MachineTest, ErrorsSayWhatAndWhere) {
  const std::string add = "def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) {\n  add(%x, %y) }";
  const Value two = Tensor::Zeros({2}, kFloat32);
  const Value three = Tensor::Zeros({3}, kFloat32);
  ExpectError([&] { RunText(add, {two, three}); }, ErrorCategory::kInput, "t.relay:2:3: error: 'add'");
  ExpectError([&] { RunText(add, {two}); }, ErrorCategory::kInput, "'@main' has 2 parameters, got 1 arguments");
  ExpectError(
      [&] {
        RunText(add, {two, Scalar(1)});
      },
      ErrorCategory::kInput, "parameter 'y' wants Tensor[(?), float32], got int32");
  ExpectError([&] { vm::Machine(CompileText(add)).Invoke("man", {}); }, ErrorCategory::kInput, "no function '@man'");
  ExpectError(
      [] {
        RunText(std::string(kList) + "def @main() { let %l: List[int32] = Nil; match? (%l) { Cons(%x, _) => %x } }");
      },
      ErrorCategory::kInput, "no clause of 'match' fits Nil");
}

TEST(MachineTest, ProgramsThatDoNotEndCanBeStopped) {
  const vm::Executable executable = CompileText("def @main(%n: int32) -> int32 { @main(%n) }");
  ExpectError([&] { vm::Machine(executable).Invoke("main", {Scalar(1)}, {.max_instructions = 1000}); },
              ErrorCategory::kResource, "the program takes more than 1000 instructions");
}

/// As bytecode can make them that no type describes.
TEST(MachineTest, TuplesThatNestDeeperThanTypesHaveNone) {
  Value value = Scalar(1);
  for (int i = 0; i < 500'000; ++i) value = Value::Tuple({std::move(value)});
  EXPECT_EQ(TypeOf(value), nullptr);
  ExpectError([&] { ApplyOp(GetOp("negative")->def(), {}, {value}); }, ErrorCategory::kInput, "is called with");
}

/// @main adds 1; for arguments of two and of three elements other functions compute it, which add 2 and 3.
constexpr const char* kSpecialised = R"(
  def @main(%x: Tensor[(?), float32]) { add(%x, 1f) }
  def @of_two(%x: Tensor[(2), float32], specialises="main") { add(%x, 2f) }
  def @of_three(%x: Tensor[(3), float32], specialises="main") { add(%x, 3f) })";

TEST(MachineTest, AFunctionForTheShapesAtHandIsChosen) {
  const auto run = [](const vm::Executable& executable, int64_t size) {
    const Tensor input = Tensor::Empty({size}, kFloat32);
    for (int64_t i = 0; i < size; ++i) input.Set(i, 0);
    return vm::Machine(executable).Invoke("main", {Value(input)}).tensor().At(0);
  };
  const vm::Executable compiled = CompileText(kSpecialised);
  for (const vm::Executable& executable : {compiled, vm::Executable::Deserialize(compiled.Serialize())}) {
    EXPECT_EQ(run(executable, 1), 1);
    EXPECT_EQ(run(executable, 2), 2);
    EXPECT_EQ(run(executable, 3), 3);
    EXPECT_EQ(run(executable, 4), 1);
  }
}

TEST(MachineTest, AFunctionForCertainShapesMustFitTheOneThatItComputes) {
  const auto refuse = [](const std::string& function, const std::string& text) {
    ExpectError([&] { CompileText("def @main(%x: Tensor[(?), float32]) { %x }\n" + function); },
                ErrorCategory::kCorrupt, text);
  };
  constexpr const char* kOther = "takes other arguments than the function that it computes";
  refuse("def @f(%x: Tensor[(2), float32], specialises=\"g\") { %x }", "@f computes a function that is not there");
  refuse("def @f(%x: Tensor[(?), float32], specialises=\"main\") { %x }", kOther);
  refuse("def @f(%x: Tensor[(2), int32], specialises=\"main\") { %x }", kOther);
  refuse("def @f(%x: Tensor[(2), float32], %y: Tensor[(2), float32], specialises=\"main\") { %x }", kOther);
  refuse("def @f(%x: (Tensor[(2), float32], Tensor[(2), float32]), specialises=\"main\") { %x.0 }", kOther);
}

}  // namespace
}  // namespace collage
