// program_check_test.cc: programs that are right, wrong at some sizes, or cannot be judged.
#include "driver/play_off/program_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

constexpr const char* kOpen = "def @main(%x: Tensor[(?, ?), float32]) { nn.relu(%x) }";

/// relu(x) times a number, of the shapes that are given.
IRModule Scaled(const std::vector<Shape>& shapes, double factor) {
  const Var x = MakeVar("x", TensorType(shapes.at(0), kFloat32));
  const Expr body = MakeCall("multiply", {MakeCall("nn.relu", {x}), MakeScalar(factor, kFloat32)});
  return InferTypes(IRModule::FromFunction(MakeFunction({x}, body)));
}

ProgramCheckResult Check(const IRModule& module, const std::string& program, BindShapes bind = nullptr,
                         std::vector<std::vector<Tensor>> inputs = {}) {
  return CheckProgram(module, vm::Compile(ParseModule(program)),
                      {.bind = std::move(bind), .inputs = std::move(inputs)});
}

TEST(ShapesToTryTest, OpenSizesAreSmallOddOneEqualDifferentAndLarge) {
  const IRModule module =
      ParseModule("def @main(%x: Tensor[(?, 3, ?), float32], %y: Tensor[(?, ?), int64]) { (%x, %y) }");
  const std::vector<std::vector<Shape>> all = ShapesToTry(module.main());
  const auto has = [&](const std::vector<Shape>& shapes) { return std::ranges::find(all, shapes) != all.end(); };
  EXPECT_EQ(all.front(), (std::vector<Shape>{{2, 3, 33}, {2, 33}}));
  EXPECT_TRUE(has({{1, 3, 1}, {1, 1}}));
  EXPECT_TRUE(has({{5, 3, 5}, {5, 5}}));
  EXPECT_TRUE(has({{1, 3, 160}, {1, 160}}));
  EXPECT_TRUE(has({{3, 3, 5}, {7, 11}}));
}

TEST(ShapesToTryTest, KnownSizesAreTriedAsTheyAre) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(2, 3), float32]) { %x }");
  EXPECT_EQ(ShapesToTry(module.main()), (std::vector<std::vector<Shape>>{{{2, 3}}}));
}

TEST(ProgramCheckTest, WhatIsRightIsVerifiedAtSeveralSizes) {
  const IRModule module = ParseModule(kOpen);
  const ProgramCheckResult own = Check(module, kOpen);
  EXPECT_GE(own.sizes.size(), 3u);
  EXPECT_EQ(own.sizes.front(), "x=2x33");
  EXPECT_EQ(own.not_verified, "");
  const ProgramCheckResult bound =
      Check(module, kOpen, [](const std::vector<Shape>& shapes) { return Scaled(shapes, 1); });
  EXPECT_EQ(bound.sizes, own.sizes);
  EXPECT_EQ(bound.max_error, 0);
}

TEST(ProgramCheckTest, WhatIsWrongAtLargeSizesOnlyIsRefusedAndNamed) {
  const BindShapes bind = [](const std::vector<Shape>& shapes) {
    return Scaled(shapes, shapes.at(0).at(1) > 100 ? 1.01 : 1);
  };
  ExpectError([&] { Check(ParseModule(kOpen), kOpen, bind); }, ErrorCategory::kInternal,
              "the compiled program is wrong at x=1x160: result 0 is wrong, element");
}

TEST(ProgramCheckTest, WrongShapesAreRefused) {
  ExpectError([&] { Check(ParseModule(kOpen), "def @main(%x: Tensor[(?, ?), float32]) { transpose(%x) }"); },
              ErrorCategory::kInternal, "result 0 is wrong, got float32 (33, 2), wanted float32 (2, 33)");
}

TEST(ProgramCheckTest, AProgramThatFailsWhereTheModelDoesNotIsRefused) {
  const std::string fails = R"(def @main(%x: Tensor[(?, ?), float32]) {
      dyn.reshape(%x, reshape(cast(66, dtype="int64"), newshape=[1])) })";
  ExpectError([&] { Check(ParseModule(kOpen), fails); }, ErrorCategory::kInternal,
              "the compiled program is wrong at x=");
}

TEST(ProgramCheckTest, SizesThatTheModelRefusesAreReplaced) {
  const BindShapes bind = [](const std::vector<Shape>& shapes) {
    if (shapes.at(0).at(1) < 64) throw Error(ErrorCategory::kInput, "a window of 64 does not fit");
    return Scaled(shapes, 1);
  };
  const ProgramCheckResult some = Check(ParseModule(kOpen), kOpen, bind);
  EXPECT_GE(some.sizes.size(), 3u);
  EXPECT_EQ(std::ranges::find(some.sizes, "x=2x33"), some.sizes.end());

  const ProgramCheckResult none = Check(ParseModule(kOpen), kOpen, [](const std::vector<Shape>&) -> IRModule {
    throw Error(ErrorCategory::kInput, "there is no such model");
  });
  EXPECT_TRUE(none.sizes.empty());
  EXPECT_EQ(none.not_verified, "there is no such model");
}

TEST(ProgramCheckTest, ControlFlowIsInterpreted) {
  const std::string branches = R"(
      def @main(%n: int32, %x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
        if (%n < 1) { exp(%x) } else { negative(%x) }
      })";
  const std::string same = R"(
      def @main(%n: int32, %x: Tensor[(4, 8), float32]) -> Tensor[(4, 8), float32] {
        exp(%x)
      })";
  const ProgramCheckResult right = Check(ParseModule(branches), branches);
  EXPECT_EQ(right.sizes, std::vector<std::string>{"n=scalar, x=4x8"});
  ExpectError([&] { Check(ParseModule(branches), same); }, ErrorCategory::kInternal,
              "the compiled program is wrong at n=scalar, x=4x8: result 0 is wrong");
}

TEST(ProgramCheckTest, EndlessLoopsAreNotWaitedFor) {
  const std::string endless = R"(
      def @loop(%x: Tensor[(4), float32]) -> Tensor[(4), float32] { @loop(tanh(%x)) }
      def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] { @loop(%x) })";
  const ProgramCheckResult result = Check(ParseModule(endless), endless);
  EXPECT_TRUE(result.sizes.empty());
  EXPECT_EQ(result.not_verified, "evaluating the reference takes too long");
}

TEST(ProgramCheckTest, GivenInputsAreUsedFirst) {
  const Tensor given = Tensor::Zeros({3, 4}, kFloat32);
  const ProgramCheckResult result = Check(ParseModule(kOpen), kOpen, nullptr, {{given}});
  EXPECT_EQ(result.sizes.front(), "x=3x4 (given inputs)");
}

TEST(ProgramCheckTest, WhatTakesNoTensorsIsNotRun) {
  const std::string text = "def @main(%f: fn (float32) -> float32) -> float32 { %f(1f) }";
  const ProgramCheckResult result = Check(ParseModule(text), text);
  EXPECT_NE(result.not_verified, "");
}

}  // namespace
}  // namespace collage
