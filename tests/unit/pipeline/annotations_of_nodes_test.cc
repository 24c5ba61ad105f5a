// Passes whose result the text format does not show in full: spans and devices of nodes.
#include <gtest/gtest.h>

#include "collage/ir/op.h"
#include "collage/ir/text.h"
#include "collage/transform/passes.h"

namespace collage {
namespace {

TEST(CapturePostDfsIndexInSpansTest, SpansSayIndexAndPostDominator) {
  //   0 %x   1 `add`   2 `exp`   3 exp   4 1f   5 add   6 function
  const IRModule before = ParseModule("def @main(%x: Tensor[(4), float32]) { add(exp(%x), 1f) }");
  const Span original = before.main()->body()->span();
  const IRModule after = RunPass(GetPass("CapturePostDfsIndexInSpans"), before);
  const CallNode* add = As<CallNode>(after.main()->body());
  const auto check = [](const ExprNode& expr, int index, int dominator) {
    EXPECT_EQ(expr.span().source, "index");
    EXPECT_EQ(expr.span().line, index);
    EXPECT_EQ(expr.span().column, dominator);
  };
  check(*add->args()[0], 3, 5);
  check(*add->args()[1], 4, 5);
  check(*add, 5, 6);
  check(*after.main(), 6, -1);
  // The module before keeps its own.
  EXPECT_EQ(before.main()->body()->span().source, original.source);
  EXPECT_EQ(before.main()->body()->span().column, original.column);
}

TEST(PlanDevicesTest, EveryNodeHasADeviceAndTheModuleBeforeHasNone) {
  const IRModule before =
      ParseModule("def @main(%x: Tensor[(4), float32]) { tanh(on_device(exp(%x), device_type=2, device_id=1)) }");
  const IRModule after = RunPass(GetPass("PlanDevices"), before);
  const CallNode* tanh = As<CallNode>(after.main()->body());
  EXPECT_EQ(tanh->virtual_device(), (VirtualDevice{.device_type = 1}));
  const CallNode* copy = As<CallNode>(tanh->args()[0]);
  EXPECT_EQ(copy->op()->name, "device_copy");
  EXPECT_EQ(copy->virtual_device(), (VirtualDevice{.device_type = 1}));
  EXPECT_EQ(copy->args()[0]->virtual_device(), (VirtualDevice{.device_type = 2, .device_id = 1}));
  EXPECT_EQ(after.main()->params()[0]->virtual_device(), (VirtualDevice{.device_type = 2, .device_id = 1}));
  EXPECT_EQ(after.main()->virtual_device(), (VirtualDevice{.device_type = 1}));
  EXPECT_EQ(before.main()->params()[0]->virtual_device(), VirtualDevice());
  EXPECT_EQ(before.main()->body()->virtual_device(), VirtualDevice());
}

}  // namespace
}  // namespace collage
