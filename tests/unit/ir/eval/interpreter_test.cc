#include "ir/eval/interpreter.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"
#include "unit/ir/deep.h"
#include "unit/ir/programs.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

Tensor Scalar(double value) { return Scalar(value, kFloat32); }

Value Main(const std::string& text, std::vector<Value> args = {}, const InterpretOptions& options = {}) {
  return Interpret(ParseModule(text, "t.relay"), "main", std::move(args), options);
}

std::string Shown(const std::string& text, std::vector<Value> args = {}) {
  return ToString(Main(text, std::move(args)));
}

TEST(InterpreterTest, LetIfAndOperators) {
  const std::string text = "def @main(%x: float32) { let %y = %x + 1f; if (%y < 3f) { %y * 2f } else { -1f } }";
  EXPECT_EQ(Shown(text, {Scalar(1)}), "4");
  EXPECT_EQ(Shown(text, {Scalar(2)}), "-1");
}

TEST(InterpreterTest, MatchTakesTheFirstClauseThatFits) {
  const std::string text = std::string(kList) + R"(
    def @main(%l: List[(int32, int32)]) {
      match? (%l) {
        Cons((%a, _), Nil) => { %a },
        Cons(_, Cons((_, %b), %rest)) => { match (%rest) { Nil => { %b }, _ => { 100 } } },
        %other => { match? (%other) { Nil => { 0 } } }
      }
    }
    def @nil() -> List[(int32, int32)] { Nil }
    def @one() { Cons((1, 2), @nil()) }
    def @two() { Cons((5, 6), @one()) }
    def @test() { (@main(@nil()), @main(@one()), @main(@two()), @main(Cons((7, 8), @two()))) })";
  EXPECT_EQ(ToString(Interpret(ParseModule(text), "test", {})), "(0, 1, 2, 100)");
}

TEST(InterpreterTest, AMatchThatNothingFitsIsAnError) {
  const std::string text =
      std::string(kList) + "def @main() { let %l: List[int32] = Nil; match? (%l) { Cons(%x, _) => { %x } } }";
  ExpectError([&] { Main(text); }, ErrorCategory::kInput, "no clause of 'match' fits Nil");
}

TEST(InterpreterTest, ClosuresCaptureValuesAndSharedNodes) {
  EXPECT_EQ(Shown(R"(def @main(%x: int32) {
    %0 = %x + 1;
    let %make = fn (%a: int32) { fn (%b: int32) { %0 * %a + %b } };
    let %f = %make(10);
    let %x = 1000;
    let %g = %make(100);
    (%f(1), %g(2), %0)
  })",
                  {Scalar(2, kInt32)}),
            "(31, 302, 3)");
}

TEST(InterpreterTest, RecursionThroughGlobalsAndLets) {
  EXPECT_EQ(Shown(R"(
    def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }
    def @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }
    def @main(%n: int32) {
      let %fact = fn (%k: int32) -> int32 { if (%k == 0) { 1 } else { %k * %fact(%k - 1) } };
      (@even(%n), %fact(%n), (fn (%f: fn (int32) -> int32) { %f(3) })(%fact))
    })",
                  {Scalar(6, kInt32)}),
            "(1, 720, 6)");
}

TEST(InterpreterTest, ReferencesKeepTheOrderOfStatements) { EXPECT_EQ(Shown(kWritesInOrder), "(11, 111)"); }

TEST(InterpreterTest, AReferenceThatHoldsTheFunctionThatReadsIt) {
  // Landin's knot: recursion without a recursive definition.
  EXPECT_EQ(Shown(R"(def @main() {
    let %knot = ref(fn (%n: int32) -> int32 { 0 });
    ref_write(%knot, fn (%n: int32) -> int32 { if (%n == 0) { 0 } else { %n + ref_read(%knot)(%n - 1) } });
    ref_read(%knot)(4)
  })"),
            "10");
}

TEST(InterpreterTest, SharedNodesAreEvaluatedOncePerCall) {
  EXPECT_EQ(Shown(R"(def @main() {
    let %count = ref(0);
    let %tick = fn () -> int32 { let %n = ref_read(%count) + 1; ref_write(%count, %n); %n };
    %0 = %tick();
    let %f = fn () { %0 + %0 };
    (%0, %f(), %f(), %tick())
  })"),
            "(1, 2, 2, 2)");
}

TEST(InterpreterTest, PolymorphicFunctionsAndConstructorsAsFunctions) {
  EXPECT_EQ(Shown(std::string(kList) + R"(
    def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
      match (%l) { Nil => { Nil }, Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) } }
    }
    def @id[A](%a: A) -> A { %a }
    def @main() { @map(fn (%x: int32) { @id(%x * 2) }, Cons(1, Cons(2, Nil))) })"),
            "Cons(2, Cons(4, Nil))");
}

TEST(InterpreterTest, UnknownDimensionsTakeTheShapesThatAreThere) {
  const std::string text = "def @main(%x: Tensor[(?, 2), float32]) { concatenate((%x, nn.relu(%x)), axis=0) }";
  const Value result = Main(text, {Tensor::Zeros({3, 2}, kFloat32)});
  EXPECT_EQ(result.tensor().shape(), (Shape{6, 2}));
  ExpectError(
      [&] {
        Main(text, {Tensor::Zeros({3, 3}, kFloat32)});
      },
      ErrorCategory::kInput, "parameter 'x' wants Tensor[(?, 2), float32], got Tensor[(3, 3), float32]");
}

// ---- depth ----

TEST(InterpreterTest, TailCallsRunInConstantSpace) {
  const std::string text = R"(
    def @main(%n: int32) -> int32 {
      let %loop = fn (%i: int32, %sum: int32) -> int32 {
        if (%i == 0) { %sum } else { let %next = %i - 1; %loop(%next, %sum + 2) }
      };
      %loop(%n, 0)
    })";
  EXPECT_EQ(ToString(Main(text, {Scalar(50000, kInt32)}, {.max_depth = 10})), "100000");
}

TEST(InterpreterTest, DeepRecursionWorksUpToTheLimitAndIsThenAnError) {
  const std::string text = "def @main(%n: int32) -> int32 { if (%n == 0) { 0 } else { 1 + @main(%n - 1) } }";
  EXPECT_EQ(Shown(text, {Scalar(30000, kInt32)}), "30000");
  ExpectError([&] { Main(text, {Scalar(5000, kInt32)}, {.max_depth = 1000}); }, ErrorCategory::kResource,
              "calls nest more than 1000 deep");
  ExpectError([] { Main("def @main() -> int32 { 1 + @main() }"); }, ErrorCategory::kResource,
              "calls nest more than 100000 deep");
}

TEST(InterpreterTest, LongChainsAndLongListsNeedNoStack) {
  EXPECT_EQ(Interpret(IRModule::FromFunction(DeepChain()), "main", {Tensor::Zeros({4}, kFloat32)}).tensor().shape(),
            (Shape{4}));
  const std::string text = std::string(kList) + R"(
    def @build(%n: int32, %l: List[int32]) -> List[int32] { if (%n == 0) { %l } else { @build(%n - 1, Cons(%n, %l)) } }
    def @main() { @build(100000, Nil) })";
  const Value list = Main(text);
  EXPECT_TRUE(ValuesEqual(list, Main(text)));
  EXPECT_EQ(ToString(list).substr(0, 16), "Cons(1, Cons(2, ");
}

// ---- errors ----

TEST(InterpreterTest, ErrorsSayWhatAndWhere) {
  ExpectError([] { Interpret(ParseModule("def @main() { 1 }"), "man", {}); }, ErrorCategory::kInput,
              "the module has no function '@man'");
  ExpectError([] { Main("def @main(%x: int32) { %x }"); }, ErrorCategory::kInput,
              "'@main' has 1 parameters, got 0 arguments");
  const Value three = Tensor::Zeros({3}, kFloat32);
  const Value two = Tensor::Zeros({2}, kFloat32);
  try {
    Main("def @main(%x: Tensor[(?), float32], %y: Tensor[(?), float32]) {\n  add(%x, %y) }", {two, three});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "t.relay:2:3");
    EXPECT_NE(error.message().find("'add'"), std::string::npos);
  }
  ExpectError(
      [] {
        const Var y = MakeVar("y", TensorType(Shape{}, kFloat32));
        Interpret(IRModule::FromFunction(MakeFunction({}, MakeCall("exp", {y}))), "main", {});
      },
      ErrorCategory::kInput, "variable '%y' has no value here");
}

}  // namespace
}  // namespace collage
