// whole_model_check_test.cc: plans that keep what they should not.
#include "driver/play_off/whole_model_check.h"

#include <gtest/gtest.h>

#include "collage/ir/infer_type.h"
#include "unit/runtime/test_plan.h"

namespace collage {
namespace {

constexpr int64_t kCount = 16;

/// x → x + amount, kept in `layout` on the way to the result.
ExecutionPlan AddAndKeep(float amount, Layout layout) {
  PlanWriter writer;
  const int x = writer.AddInput("x", {kCount});
  const int sum = writer.AddArenaValue({kCount});
  const int kept = writer.AddArenaValue({kCount}, layout);
  writer.Add(x, sum, amount);
  writer.Move(ExecutionPlan::Step::kConvertLayout, sum, kept);
  writer.Move(ExecutionPlan::Step::kConvertLayout, kept, writer.AddOutput("y", {kCount}));
  return writer.plan;
}

std::string CheckOf(float amount, Layout layout) {
  RegisterAddLoader();
  const Var x = MakeVar("x", TensorType(Shape{kCount}, kFloat32));
  const Function main = MakeFunction({x}, MakeCall("add", {x, MakeScalar(amount, kFloat32)}));
  InferType(main);
  const WholeModelCheck check(main, {.max_error = 0.1, .inputs = {}, .on_progress = {}});
  ExecutionInstance instance(Executable::FromPlan(AddAndKeep(amount, layout)));
  double error = 0;
  return check.Check(instance, error);
}

TEST(WholeModelCheckTest, WhatIsKeptAsFloat16StaysFarFromItsEnd) {
  EXPECT_EQ(CheckOf(200, Layout::kPlainFloat16), "");
  EXPECT_NE(CheckOf(300, Layout::kPlainFloat16).find("a value kept as float16 reaches 30"), std::string::npos)
      << CheckOf(300, Layout::kPlainFloat16);
  EXPECT_NE(CheckOf(-300, Layout::kPlainFloat16), "");
  EXPECT_EQ(CheckOf(300, Layout::kPlainBFloat16), "");
  EXPECT_EQ(CheckOf(300, Layout::kPlain), "");
  EXPECT_NE(CheckOf(70000, Layout::kPlainFloat16).find("reaches inf"), std::string::npos);
}

}  // namespace
}  // namespace collage
