#include "collage/ir/infer_type.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "unit/ir/deep.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

/// The type of `@main`'s result.
std::string ResultOf(const std::string& text) {
  return ToString(AsFuncType(ParseModule(text).main()->checked_type())->result());
}

void ExpectTypeError(const std::string& text, const std::string& part) {
  ExpectError([&] { ParseModule(text, "t.relay"); }, ErrorCategory::kInput, part);
}

TEST(InferTypeTest, OperatorsFollowTheirRelations) {
  EXPECT_EQ(ResultOf(R"(def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
                          %0 = nn.conv2d(%x, %w, padding=[1, 1]);
                          nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]) })"),
            "Tensor[(1, 4, 4, 4), float32]");
}

TEST(InferTypeTest, TuplesProjectionsAndUnknownDimensions) {
  EXPECT_EQ(ResultOf("def @main(%x: Tensor[(?, 4), float32]) { %0 = (%x, 1f); (%0.1, %0.0) }"),
            "(float32, Tensor[(?, 4), float32])");
}

TEST(InferTypeTest, LetVariablesTakeTheTypeOfTheirValue) {
  EXPECT_EQ(ResultOf("def @main(%x: float32) { let %a = cast(%x, dtype=\"int64\"); let %b = add(%a, %a); %b }"),
            "int64");
  ExpectTypeError("def @main(%x: float32) { let %a: int32 = exp(%x); %a }",
                  "'%a' is annotated int32, its value has type float32");
}

TEST(InferTypeTest, BranchesMustAgree) {
  EXPECT_EQ(ResultOf("def @main(%c: bool, %x: float32) { if (%c) { exp(%x) } else { %x } }"), "float32");
  ExpectTypeError("def @main(%c: bool, %x: float32) { if (%c) { 1 } else { %x } }",
                  "the branches of 'if' have types int32 and float32");
  ExpectTypeError("def @main(%x: float32) { if (%x) { %x } else { %x } }", "must be bool, got float32");
}

TEST(InferTypeTest, FunctionsAreChecked) {
  EXPECT_EQ(ResultOf("def @main(%x: float32) { let %f = fn (%a: float32) { (%a, %a) }; %f(%x) }"),
            "(float32, float32)");
  ExpectTypeError("def @main(%x: float32) -> int32 { %x }", "the function's result has type float32, not int32");
  ExpectTypeError("def @main(%x: float32) { fn (%a) { %a } }", "parameter '%a' has no type");
  ExpectTypeError("def @main(%x: float32) { %x(%x) }", "calls something that is no function: float32");
  ExpectTypeError("def @main(%x: float32) { let %f = fn (%a: int32) { %a }; %f(%x) }",
                  "argument 0 has type float32, the parameter int32");
  ExpectTypeError("def @main(%x: float32) { let %f = fn (%a: int32) { %a }; %f() }",
                  "a function of 1 parameters is called with 0 arguments");
}

TEST(InferTypeTest, GlobalFunctionsInAnyOrderAndInCycles) {
  EXPECT_EQ(ResultOf("def @main(%x: float32) { @zz(%x) }  def @zz(%x: float32) { (%x, 1) }"), "(float32, int32)");
  EXPECT_EQ(ResultOf(R"(def @main(%x: int32) -> int32 { if (%x > 0) { @half(%x - 1) } else { %x } }
                        def @half(%x: int32) -> int32 { @main(%x) })"),
            "int32");
  ExpectTypeError("def @main(%x: int32) { @b(%x) }  def @b(%x: int32) { @main(%x) }", "before its type is known");
}

TEST(InferTypeTest, RecursiveFunctionsByTheirAnnotation) {
  EXPECT_EQ(ResultOf(R"(def @main(%n: int32) {
                          let %f = fn (%i: int32) -> int32 { if (%i > 0) { %f(%i - 1) } else { %i } };
                          %f(%n) })"),
            "int32");
}

TEST(InferTypeTest, TypeParametersComeFromArguments) {
  EXPECT_EQ(ResultOf("def @main(%x: float32) { @id((%x, 1)) }  def @id[A](%a: A) -> A { %a }"), "(float32, int32)");
  ExpectTypeError("def @main(%x: float32) { @same(%x, 1) }  def @same[A](%a: A, %b: A) -> A { %a }",
                  "argument 1 has type int32, the parameter float32");
}

TEST(InferTypeTest, DataTypesAndMatch) {
  const std::string list = "type List[A] { Cons(A, List[A]), Nil, } ";
  EXPECT_EQ(ResultOf(list + R"(def @main(%l: List[Tensor[(2), float32]], %x: Tensor[(2), float32]) {
                                 match (%l) { Cons(%h, %t) => { Cons(add(%h, %x), %t) }, Nil => { %l }, } })"),
            "List[Tensor[(2), float32]]");
  ExpectTypeError(list + "def @main(%l: List[int32]) { match (%l) { Cons(%h, _) => { %h }, Nil => { 1f }, } }",
                  "the clauses of 'match' have types int32 and float32");
  ExpectTypeError(list + "def @main(%l: List[int32]) { Cons(1f, %l) }", "argument 1 has type List[int32]");
  ExpectTypeError(list + "def @main(%l: int32) { match (%l) { Nil => { 1 }, } }", "'Nil' cannot match int32");
}

TEST(InferTypeTest, References) {
  EXPECT_EQ(ResultOf("def @main(%x: float32) { let %r = ref(%x); ref_write(%r, 2f); ref_read(%r) }"), "float32");
  ExpectTypeError("def @main(%x: float32) { let %r = ref(%x); ref_write(%r, 2) }",
                  "a value of type int32 is written to a reference to float32");
}

TEST(InferTypeTest, HolesAreFilledFromUses) {
  const std::string list = "type List[A] { Cons(A, List[A]), Nil, } ";
  EXPECT_EQ(ResultOf("def @main(%x: float32) { let %f = fn (%a, %b) { (add(%a, %a), %b) }; %f(%x, 1).0 }"), "float32");
  EXPECT_EQ(ResultOf(list + "def @main(%x: float32) { Cons(%x, Nil) }"), "List[float32]");
  EXPECT_EQ(ResultOf(list + "def @main() -> List[int32] { Nil }"), "List[int32]");
  EXPECT_EQ(ResultOf(list + "def @main() { let %l: List[_] = Nil; Cons(1, %l) }"), "List[int32]");
  EXPECT_EQ(ResultOf(list + "def @main() { let %r = ref(Nil); ref_write(%r, Cons(1f, Nil)); ref_read(%r) }"),
            "List[float32]");
  EXPECT_EQ(ResultOf("def @main(%n: int32) { let %f = fn (%i) { if (%i > 0) { %f(%i - 1) } else { 1f } }; %f(%n) }"),
            "float32");
  EXPECT_EQ(ResultOf("def @main(%n: int32) { if (%n > 0) { @main(%n - 1) } else { %n } }"), "int32");
  EXPECT_EQ(
      ResultOf("def @main(%x: float32) { let %twice = fn (%f, %a) { %f(%f(%a)) }; %twice(fn (%v) { exp(%v) }, %x) }"),
      "float32");
  EXPECT_EQ(ResultOf(list + R"(def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
                                 match (%l) { Nil => { Nil }, Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) } } }
                               def @id[A](%a: A) -> A { %a }
                               def @main() { @map(@id, Cons(True, Nil)) })"),
            "List[bool]");
  ExpectTypeError(list + "def @main() { let %l = Nil; 1 }", "the type of this expression is not known beyond List[_]");
  ExpectTypeError("def @main() { let %f = fn (%x) { %x(%x) }; 1 }", "this function is called with itself");
  ExpectTypeError("def @main() { let %f = fn (%x) { %x.0 }; 1 }", "parameter '%x' has no type");
  ExpectTypeError("def @main(%t: (int32,)) { let %f = fn (%x) { let %y = %x.2; %x }; %f(%t) }",
                  "field 2 of (int32,) does not exist");
}

TEST(InferTypeTest, ClausesOfMatchMustBeComplete) {
  const std::string list = "type List[A] { Cons(A, List[A]), Nil, } type U { A, B, C } ";
  const auto match = [&](const std::string& type, const std::string& clauses) {
    return list + "def @main(%l: " + type + ") { match (%l) { " + clauses + " } }";
  };
  EXPECT_EQ(ResultOf(match("List[int32]", "Cons(_, Cons(%x, _)) => %x, Nil => 1, Cons(%x, Nil) => %x")), "int32");
  EXPECT_EQ(ResultOf(match("(U, U)", "(A, _) => 1, (_, B) => 2, (B, %x) => 3, (C, A) => 4, (C, C) => 5")), "int32");
  EXPECT_EQ(ResultOf(match("U", "A => 1, %other => 2")), "int32");
  ExpectTypeError(match("List[int32]", "Cons(_, Cons(%x, _)) => %x, Nil => 1"),
                  "no clause of 'match' fits Cons(_, Nil)");
  ExpectTypeError(match("(U, U)", "(A, _) => 1, (_, B) => 2, (B, %x) => 3, (C, A) => 4"),
                  "no clause of 'match' fits (C, C)");
  ExpectTypeError(match("(List[U],)", "(Cons(A, _),) => 1, (Nil,) => 2"), "no clause of 'match' fits (Cons(B, _),)");
  EXPECT_EQ(ResultOf(list + "def @main(%u: U) { match? (%u) { A => 1 } }"), "int32");
}

TEST(InferTypeTest, UnknownSizesAcceptKnownOnes) {
  EXPECT_EQ(ResultOf("def @main(%x: Tensor[(3), float32]) { @f(%x) }  def @f(%x: Tensor[(?), float32]) { exp(%x) }"),
            "Tensor[(?), float32]");
  EXPECT_EQ(ResultOf(R"(def @main(%c: bool, %x: Tensor[(3, 1), float32], %y: Tensor[(2, 1), float32]) {
                          if (%c) { %x } else { %y } })"),
            "Tensor[(?, 1), float32]");
  EXPECT_EQ(ResultOf("def @main(%x: Tensor[(3), float32]) -> Tensor[(?), float32] { %x }"), "Tensor[(?), float32]");
  ExpectTypeError("def @main(%x: Tensor[(?), float32]) { @f(%x) }  def @f(%x: Tensor[(3), float32]) { exp(%x) }",
                  "argument 0 has type Tensor[(?), float32], the parameter Tensor[(3), float32]");
  ExpectTypeError(R"(def @main(%x: Tensor[(3), float32]) {
                       let %r: ref(Tensor[(?), float32]) = ref(%x); ref_read(%r) })",
                  "is annotated ref(Tensor[(?), float32])");
}

/// -1 says `?` in a type, and must not get there from an attribute.
TEST(InferTypeTest, SizesBelowZeroAreRefused) {
  const auto call = [](const std::string& text) {
    return "def @main(%x: Tensor[(1, 2, 1, 1), float32]) { " + text + " }";
  };
  ExpectTypeError(call("broadcast_to(%x, shape=[1, 2, -1, 1])"), "cannot broadcast to a dimension of -1");
  ExpectTypeError(call("tile(%x, reps=[1, 1, 1, -1])"), "cannot repeat -1 times");
  ExpectTypeError(call("image.resize2d(%x, size=[-1, 2])"), "cannot resize to -1 pixels");
  ExpectTypeError(call("zeros(shape=[-1])"), "cannot make a tensor with a dimension of -1");
}

TEST(InferTypeTest, TypesThatAreTooLargeToSpellOutAreRefused) {
  const auto chain = [](const std::string& first, const std::string& step, int count) {
    std::string text = first;
    for (int i = 1; i <= count; ++i) {
      const std::string now = std::to_string(i);
      const std::string before = std::to_string(i - 1);
      text +=
          "%" + now + " = " + (step == "pair" ? "(%" + before + ", %" + before + ")" : "(%" + before + ",)") + ";\n";
    }
    return "def @main(%x: int32) {" + text + "%" + std::to_string(count) + ".0; 1 }";
  };
  ExpectTypeError(chain("%0 = %x;\n", "pair", 100), "the type of this expression is too large");
  ExpectTypeError(chain("%0 = %x;\n", "single", 5000), "the type of this expression is too large");
}

TEST(InferTypeTest, ErrorsShowOperatorTypesReasonAndPlace) {
  ExpectTypeError(R"(def @main(%x: Tensor[(1, 3, 224), float32], %w: Tensor[(4, 3, 3, 3), float32]) {
  %2 = nn.conv2d(%x, %w, padding=[1, 1]);
  %2
})",
                  "t.relay:2:8: error: 'nn.conv2d' expects 4-d data, got Tensor[(1, 3, 224), float32] (arguments: "
                  "Tensor[(1, 3, 224), float32], Tensor[(4, 3, 3, 3), float32])\n"
                  "    %2 = nn.conv2d(%x, %w, padding=[1, 1]);\n"
                  "         ^");
  ExpectTypeError("def @main() { let %f = exp; 1 }", "operator 'exp' is used as a value");
  ExpectTypeError("def @main() { exp }", "operator 'exp' is used as a value");
  ExpectTypeError("def @main(%x: float32) { add(%x) }", "'add' expects 2 arguments, got 1");
}

TEST(InferTypeTest, ErrorsNameTheNodeOfAModel) {
  const Var x = MakeVar("x", TensorType(Shape{4}, kFloat32));
  const Expr call = MakeCall("nn.dense", {x, x});
  call->set_span({"fc1", 0, 0});
  ExpectError([&] { InferType(call); }, ErrorCategory::kInput, "fc1: error: 'nn.dense' expects 2-d data");
}

TEST(InferTypeTest, EveryNodeOfADeepGraphIsTyped) {
  const Function chain = DeepChain();
  InferType(chain);
  PostOrder(chain, [](const Expr& expr) { ASSERT_TRUE(expr->kind() == ExprKind::kOp || expr->checked_type()); });
}

}  // namespace
}  // namespace collage
