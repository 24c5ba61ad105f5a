// Stages of 16-bit floats of dynamic shapes: what takes their place is the same in float32.
#include <gtest/gtest.h>

#include <string>

#include "collage/ir/text.h"
#include "collage/ir/value.h"
#include "ir/eval/interpreter.h"
#include "runtime/random_inputs.h"
#include "transform/passes/dynamic/widen.h"

namespace collage {
namespace {

bool IsWide(const CallNode& call) { return AsTensorType(call.checked_type())->dtype() == kFloat32; }

IRModule Parsed(const std::string& text) { return ParseModule("#[version = \"0.0.5\"]\n" + text, "t.relay"); }

TEST(DynamicWidenTest, ConvolutionsAndProducts) {
  const IRModule module = Parsed(R"(def @main(%x: Tensor[(1, 2, ?), float16], %w: Tensor[(3, 2, 3), float16]) {
      nn.conv1d(%x, %w, padding=[1, 1], out_dtype="float16") })");
  const IRModule wide = WidenDynamic(module, IsWide);
  const std::string text = PrintModule(wide);
  EXPECT_NE(text.find("out_dtype=\"float32\""), std::string::npos) << text;
  const Tensor x = Tensor::Empty({1, 2, 7}, kFloat16), w = Tensor::Empty({3, 2, 3}, kFloat16);
  FillRandom(x, /*seed=*/1, -1, 1);
  FillRandom(w, /*seed=*/2, -1, 1);
  const Value expected = Interpret(module, "main", {Value(x), Value(w)});
  EXPECT_TRUE(ValuesEqual(expected, Interpret(wide, "main", {Value(x), Value(w)}), 1e-3)) << text;
}

TEST(DynamicWidenTest, LeavesWhatIsStaticOrTakenOrOfNoUse) {
  const std::string fixed =
      R"(def @main(%x: Tensor[(4, 2), float16], %w: Tensor[(3, 2), float16]) { nn.dense(%x, %w) })";
  const std::string open =
      R"(def @main(%x: Tensor[(?, 2), float16], %w: Tensor[(3, 2), float16]) { nn.dense(%x, %w) })";
  const auto text = [](const std::string& module, bool takes) {
    return PrintModule(WidenDynamic(Parsed(module), [&](const CallNode&) { return takes; }));
  };
  EXPECT_EQ(PrintModule(WidenDynamic(Parsed(fixed), IsWide)).find("cast"), std::string::npos);
  EXPECT_EQ(text(open, true).find("cast"), std::string::npos);
  EXPECT_EQ(text(open, false).find("cast"), std::string::npos);
  EXPECT_NE(PrintModule(WidenDynamic(Parsed(open), IsWide)).find("cast"), std::string::npos);
}

}  // namespace
}  // namespace collage
