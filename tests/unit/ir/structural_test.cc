#include "collage/ir/structural.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"
#include "unit/ir/deep.h"

namespace collage {
namespace {

Constant Filled(Shape shape, double value) {
  Tensor tensor = Tensor::Empty(std::move(shape), kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, value);
  return MakeConstant(tensor);
}

bool SameText(const std::string& a, const std::string& b) {
  ParseOptions options;
  options.constants = {Filled({4}, 1)};
  return StructuralEqual(ParseExpr(a, "a", options), ParseExpr(b, "b", options));
}

TEST(StructuralTest, NamesDoNotCount) {
  EXPECT_TRUE(SameText("fn (%x: float32) { let %a = exp(%x); add(%a, %x) }",
                       "fn (%q: float32) { let %b = exp(%q); add(%b, %q) }"));
  EXPECT_FALSE(SameText("fn (%x: float32, %y: float32) { subtract(%x, %y) }",
                        "fn (%x: float32, %y: float32) { subtract(%y, %x) }"));
}

TEST(StructuralTest, OperatorsTypesAttributesFieldsAndOrderCount) {
  const std::string text = "fn (%x: Tensor[(4), float32]) { nn.softmax(%x, axis=0) }";
  EXPECT_FALSE(SameText(text, "fn (%x: Tensor[(4), float32]) { nn.log_softmax(%x, axis=0) }"));
  EXPECT_FALSE(SameText(text, "fn (%x: Tensor[(5), float32]) { nn.softmax(%x, axis=0) }"));
  EXPECT_FALSE(SameText(text, "fn (%x: Tensor[(4), float32]) { nn.softmax(%x) }"));
  EXPECT_FALSE(SameText(text, "fn (%x: Tensor[(4), float32], Primitive=1) { nn.softmax(%x, axis=0) }"));
  EXPECT_FALSE(SameText("fn (%x: (float32, float32)) { %x.0 }", "fn (%x: (float32, float32)) { %x.1 }"));
}

TEST(StructuralTest, DigestsOfAttributesAreThoseOfStoredCosts) {
  const Var x = MakeVar("x", TensorType(Shape{4}, kFloat32));
  const AttrValue::List list{{}, true, false, 7, -0.5, "text", AttrValue::List{1, AttrValue::List{}}};
  EXPECT_EQ(StructuralHash(MakeFunction({x}, x, {}, {{"all", list}, {"one", 1}})), "b2f1334bd9ed6dbad3f61432143f7304");
}

TEST(StructuralTest, SharingCountsExceptThatOfScalars) {
  EXPECT_FALSE(SameText("fn (%x: float32) { %0 = exp(%x); add(%0, %0) }",
                        "fn (%x: float32) { %0 = exp(%x); %1 = exp(%x); add(%0, %1) }"));
  const Constant one = MakeScalar(1, kFloat32);
  EXPECT_TRUE(StructuralEqual(MakeCall("add", {one, one}), MakeCall("add", {one, MakeScalar(1, kFloat32)})));
  EXPECT_FALSE(StructuralEqual(MakeCall("add", {one, one}), MakeCall("add", {one, MakeScalar(2, kFloat32)})));
  EXPECT_FALSE(StructuralEqual(MakeCall("add", {one, one}), MakeCall("add", {one, MakeScalar(1, kFloat64)})));
  EXPECT_FALSE(StructuralEqual(MakeScalar(0.0, kFloat32), MakeScalar(-0.0, kFloat32)));
}

TEST(StructuralTest, TimingKeysSeeShapesOfConstantsAndValuesOfScalars) {
  const Var x = MakeVar("x", TensorType(Shape{4}, kFloat32));
  const auto key = [&](const Expr& constant) {
    return StructuralHash(MakeFunction({x}, MakeCall("add", {x, constant})), {.constants_by_shape = true});
  };
  EXPECT_EQ(key(Filled({4}, 1)), key(Filled({4}, 2)));
  EXPECT_NE(key(Filled({4}, 1)), key(Filled({1}, 1)));
  EXPECT_NE(key(MakeScalar(1, kFloat32)), key(MakeScalar(2, kFloat32)));
  EXPECT_FALSE(StructuralEqual(Filled({4}, 1), Filled({4}, 2)));
  EXPECT_TRUE(StructuralEqual(Filled({4}, 1), Filled({4}, 1)));
  EXPECT_EQ(key(x).size(), 32u);
}

TEST(StructuralTest, PatternsCount) {
  const char* text = R"(type Pair { P(float32, float32), }
                        def @main(%p: Pair) { match (%p) { P(%a, _) => { %a }, } })";
  const char* swapped = R"(type Pair { P(float32, float32), }
                           def @main(%p: Pair) { match (%p) { P(_, %a) => { %a }, } })";
  EXPECT_FALSE(StructuralEqual(ParseModule(text).main(), ParseModule(swapped).main()));
  EXPECT_TRUE(StructuralEqual(ParseModule(text).main(), ParseModule(text).main()));
}

TEST(StructuralTest, TypeVariablesCountByWhoBindsThem) {
  EXPECT_TRUE(SameText("fn [A, B](%a: A, %f: fn (A) -> B) { %f(%a) }", "fn [T, U](%a: T, %f: fn (T) -> U) { %f(%a) }"));
  EXPECT_FALSE(SameText("fn [A, B](%a: A, %b: B) { %a }", "fn [A, B](%a: A, %b: A) { %a }"));
  EXPECT_FALSE(SameText("fn [A, B](%a: A) { %a }", "fn [A](%a: A) { %a }"));
  EXPECT_TRUE(SameText("fn (%f: fn [A] (A) -> A, %g: fn [A] (A) -> A) { %f }",
                       "fn (%f: fn [A] (A) -> A, %g: fn [B] (B) -> B) { %f }"));
  EXPECT_FALSE(SameText("fn [A](%f: fn [B] (A, B) -> A) { %f }", "fn [A](%f: fn [B] (A, B) -> B) { %f }"));
}

TEST(StructuralTest, VirtualDevicesCount) {
  const std::string device = "virtual_device=VirtualDevice(device_type=";
  EXPECT_FALSE(SameText("fn (%x {" + device + "1)}: int32) { %x }", "fn (%x {" + device + "2)}: int32) { %x }"));
  EXPECT_FALSE(SameText("fn (%x: int32) { %x }", "fn (%x: int32, " + device + "2)) { %x }"));
  EXPECT_TRUE(SameText("fn (%x: int32, " + device + "2)) { %x }", "fn (%y: int32, " + device + "2)) { %y }"));
}

TEST(StructuralTest, DepthIsNoLimit) { EXPECT_TRUE(StructuralEqual(DeepChain(), DeepChain())); }

}  // namespace
}  // namespace collage
