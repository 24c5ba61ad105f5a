// Sizes of dynamic dimensions that are named: their combinations, the models that have them, and the functions of
// programs.
#include "program/named_sizes.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/ir/value.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

using Sizes = std::map<std::string, Shape>;

IRModule Module(const std::string& text) { return ParseModule(text, "m.relay"); }

/// A function of two inputs whose first dimension is called batch; the second one of `x` has no name.
Function Named(const NamedDimensions::Ranges& ranges = {}) {
  const IRModule module = Module("def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?, 4), float32]) { (%x, %y) }");
  Attrs attrs = module.main()->attrs();
  NamedDimensions({{"batch", ""}, {"batch", ""}}, ranges, {"x", "y"}).AddTo(attrs);
  return MakeFunction(module.main()->params(), module.main()->body(), nullptr, attrs);
}

TEST(NamedSizesTest, CombineInAllWays) {
  const std::vector<NamedSizes> all = CombineSizes(Named(), {{"batch", {8, 1, 8}}, {"x[1]", {3, 5}}});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].text, "batch=1 x[1]=3");
  EXPECT_EQ(all[0].shapes, (std::vector<Shape>{{1, 3}, {1, 4}}));
  EXPECT_EQ(all[3].text, "batch=8 x[1]=5");
  EXPECT_EQ(all[3].shapes, (std::vector<Shape>{{8, 5}, {8, 4}}));
}

TEST(NamedSizesTest, SumsFollowFromTheirTerms) {
  const IRModule module = Module(
      "def @main(%m: Tensor[(?), float32], %x: Tensor[(?), float32], %y: Tensor[(?), float32]) { (%m, %x, %y) }");
  Attrs attrs = module.main()->attrs();
  const NamedDimensions named({{"past + next + 1"}, {"past"}, {"next"}}, {}, {"m", "x", "y"});
  named.AddTo(attrs);
  const Function main = MakeFunction(module.main()->params(), module.main()->body(), nullptr, attrs);
  const std::vector<NamedSizes> all = CombineSizes(main, {{"past", {8, 4}}, {"next", {1}}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text, "next=1 past=4");
  EXPECT_EQ(all[0].shapes, (std::vector<Shape>{{6}, {4}, {1}}));
  ExpectError(
      [&] {
        CombineSizes(main, {{"past", {8}}, {"next", {1}}, {"past + next + 1", {10}}});
      },
      ErrorCategory::kInput, "the model has no dynamic dimension 'past + next + 1'");

  const auto values = [](int64_t mask) {
    return std::vector<Value>{Tensor::Zeros({mask}, kFloat32), Tensor::Zeros({4}, kFloat32),
                              Tensor::Zeros({2}, kFloat32)};
  };
  EXPECT_TRUE(named.Check(values(7)).ok());
  ASSERT_FALSE(named.Check(values(6)).ok());
  EXPECT_EQ(named.Check(values(6)).reason().text,
            "inputs differ: 'past + next + 1' is 6 in 'm', its terms add up to 7");
}

TEST(NamedSizesTest, EveryOpenDimensionNeedsASize) {
  const auto refuse = [](const Sizes& sizes, const std::string& text) {
    ExpectError([&] { CombineSizes(Named(), sizes); }, ErrorCategory::kInput, text);
  };
  refuse({{"batch", {1}}}, "dimension 'x[1]' is dynamic, too, and has no sizes");
  refuse({{"batch", {1}}, {"x[1]", {2}}, {"y[1]", {4}}}, "the model has no dynamic dimension 'y[1]'");
  refuse({{"batch", {0}}, {"x[1]", {2}}}, "dimension 'batch' cannot have size 0");
  refuse({{"batch", {1, 2, 3, 4, 5, 6, 7, 8, 9}}, {"x[1]", {1, 2, 3, 4, 5, 6, 7, 8}}},
         "sizes combine in more than 64 ways");
  const IRModule pair = Module("def @main(%x: (float32, float32)) { %x.0 }");
  ExpectError([&] { CombineSizes(pair.main(), {}); }, ErrorCategory::kInput, "parameter 'x' is no tensor");
}

TEST(NamedSizesTest, RangesAreSpread) {
  std::vector<std::string> texts;
  for (const NamedSizes& one : SpreadSizes(Named({{"batch", {2, 8}}, {"x[1]", {1, 512}}}))) texts.push_back(one.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"batch=8 x[1]=512", "batch=2 x[1]=128", "batch=2 x[1]=32"}));
  EXPECT_TRUE(SpreadSizes(Named({{"batch", {2, 8}}})).empty());
  ExpectError(
      [&] {
        CombineSizes(Named({{"batch", {2, 8}}}), {{"batch", {9}}, {"x[1]", {1}}});
      },
      ErrorCategory::kInput, "dimension 'batch' cannot have size 9");
}

TEST(NamedSizesTest, BoundModulesHaveStaticShapes) {
  const IRModule open = Module(
      "def @main(%x: Tensor[(?, 3), float32]) { dyn.reshape(nn.relu(%x), multiply(shape_of(%x, dtype=\"int64\"), "
      "meta[relay.Constant][0])) }\n#[metadata]\n{\"relay.Constant\": [{\"dtype\": \"int64\", \"shape\": [2], "
      "\"data\": \"AQAAAAAAAAABAAAAAAAAAA==\"}]}");
  const IRModule bound = BindParameters(open, {{4, 3}});
  EXPECT_TRUE(TypeEqual(bound.main()->body()->checked_type(), TensorType(Shape{4, 3}, kFloat32))) << PrintModule(bound);
}

TEST(NamedSizesTest, FunctionsOfABoundModuleCallEachOther) {
  const std::string text = R"(
    def @loop(%n: int32, %x: Tensor[(SIZE), float32]) -> Tensor[(SIZE), float32] {
      if (%n < 1) { %x } else { @loop(%n - 1, add(%x, 1f)) }
    }
    def @main(%x: Tensor[(SIZE), float32]) { @loop(3, %x) })";
  const auto with_size = [&](const std::string& size) {
    std::string own = text;
    for (size_t at; (at = own.find("SIZE")) != std::string::npos;) own.replace(at, 4, size);
    return Module(own);
  };
  IRModule program = WithSpecialised(with_size("?"), with_size("2"), "x[0]=2");
  program = WithSpecialised(program, with_size("3"), "x[0]=3");
  ASSERT_EQ(program.functions().size(), 6u) << PrintModule(program);
  const Function& special = program.Lookup("main_at_1");
  EXPECT_EQ(special->attrs().StringOr(vm::kAttrSpecialises, ""), "main");
  EXPECT_EQ(program.Lookup("main_at_2")->attrs().StringOr(kAttrSizes, ""), "x[0]=3");
  EXPECT_NE(PrintModule(program).find("@loop_at_2(3"), std::string::npos) << PrintModule(program);
  for (const int64_t size : {2, 3, 4}) {
    const Tensor input = Tensor::Empty({size}, kFloat32);
    for (int64_t i = 0; i < size; ++i) input.Set(i, static_cast<double>(i));
    const Value result = vm::Machine(vm::Compile(program)).Invoke("main", {Value(input)});
    EXPECT_TRUE(ValuesEqual(result, Interpret(program, "main", {Value(input)}, {}))) << size;
  }
}

}  // namespace
}  // namespace collage
