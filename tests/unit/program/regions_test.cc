// regions_test.cc: which modules are programs, and what of them a plan runs.
#include "program/regions.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"

namespace collage {
namespace {

bool IsProgramText(const std::string& text) { return IsProgram(ParseModule("#[version = \"0.0.5\"]\n" + text, "t")); }

TEST(RegionsTest, ParametersOfDynamicShapesMakeAProgramWhetherTheyAreReadOrNot) {
  EXPECT_FALSE(IsProgramText("def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { nn.relu(%x) }"));
  EXPECT_TRUE(IsProgramText("def @main(%x: Tensor[(?), float32]) { nn.relu(%x) }"));
  EXPECT_TRUE(IsProgramText("def @main(%x: Tensor[(2), float32], %y: Tensor[(?), float32]) { nn.relu(%x) }"));
}

TEST(RegionsTest, ATupleOfParametersStaysWithWhatReadsIt) {
  // As a cache is read: what comes before and behind the tuple is one graph.
  const IRModule module = ParseModule(
      "#[version = \"0.0.5\"]\ndef @main(%past: Tensor[(8, 64), float32], %x: Tensor[(1, 64), float32], "
      "%n: Tensor[(?), float32]) {\n  %0 = tanh(%x);\n  %1 = (%past, %0);\n  %2 = concatenate(%1);\n"
      "  (nn.relu(%2), exp(%n))\n}",
      "t");
  const ProgramRegions found = FindRegions(module);
  ASSERT_EQ(found.regions.size(), 1u);
  EXPECT_EQ(found.regions[0]->params().size(), 2u);
}

}  // namespace
}  // namespace collage
