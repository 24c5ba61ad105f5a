// partial_evaluate_test.cc: evaluating ahead comes to an end and does not blow functions up; what it decides is in
// tests/golden/PartialEvaluate.
#include <gtest/gtest.h>

#include "collage/ir/text.h"
#include "collage/ir/value.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "ir/eval/interpreter.h"

namespace collage {
namespace {

IRModule PartiallyEvaluated(const std::string& text) {
  return RunPass(GetPass("PartialEvaluate"), ParseModule(text, "t.relay"));
}

/// let %f1 calls %f0 twice, %f2 calls %f1 twice, …: expanding all calls of the last gives 2^`depth` copies of %f0.
std::string Doubling(int depth) {
  std::string text = "def @main(%x: float32) {\n  let %f0 = fn (%a: float32) { tanh(%a) };\n";
  for (int i = 1; i <= depth; ++i) {
    const std::string before = "%f" + std::to_string(i - 1);
    text += "  let %f" + std::to_string(i) + " = fn (%a: float32) { " + before + "(" + before + "(%a)) };\n";
  }
  return text + "  %f" + std::to_string(depth) + "(%x)\n}";
}

TEST(PartialEvaluateTest, AFewDoublingsAreExpanded) {
  const IRModule module = PartiallyEvaluated(Doubling(5));
  int calls = 0;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    EXPECT_TRUE(expr == module.main() || expr->kind() != ExprKind::kFunction);
    calls += call != nullptr && call->op() != nullptr ? 1 : 0;
  });
  EXPECT_EQ(calls, 32);
}

TEST(PartialEvaluateTest, ManyDoublingsDoNotGrowTheFunction) {
  const std::string text = Doubling(60);
  const size_t before = CountNodes(ParseModule(text, "t.relay").main());
  EXPECT_LE(CountNodes(PartiallyEvaluated(text).main()), before);
}

TEST(PartialEvaluateTest, GlobalFunctionsThatDoubleDoNotGrowTheFunction) {
  std::string text = "def @f0(%n: int32, %a: float32) -> float32 { tanh(%a) }\n";
  for (int i = 1; i <= 60; ++i) {
    const std::string before = "@f" + std::to_string(i - 1);
    text += "def @f" + std::to_string(i) + "(%n: int32, %a: float32) -> float32 { " + before + "(1, " + before +
            "(2, %a)) }\n";
  }
  text += "def @main(%x: float32) { @f60(0, %x) }";
  EXPECT_LT(CountNodes(PartiallyEvaluated(text).main()), 20u);
}

TEST(PartialEvaluateTest, AFunctionThatIsGivenItselfAsDataEnds) {
  const std::string text = R"(
    type Self { Self(fn (Self, int32) -> int32), }
    def @main(%n: int32) -> int32 {
      let %count = fn (%self: Self, %i: int32) -> int32 {
        match (%self) { Self(%f) => { if (%i < %n) { %f(%self, %i + 1) } else { %i } } }
      };
      %count(Self(%count), 0)
    })";
  Tensor three = Tensor::Empty({}, kInt32);
  three.Set(0, 3);
  EXPECT_EQ(ToString(Interpret(PartiallyEvaluated(text), "main", {three})), "3");
}

}  // namespace
}  // namespace collage
