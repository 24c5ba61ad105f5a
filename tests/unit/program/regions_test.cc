// regions_test.cc: which modules are programs.
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

}  // namespace
}  // namespace collage
