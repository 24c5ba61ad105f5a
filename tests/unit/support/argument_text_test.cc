// Text of command lines: all of it is read, or refused and quoted.
#include "support/argument_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/support/throws.h"

namespace collage {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;
using Names = std::vector<std::string>;

TEST(ArgumentText, ReadsNumbersWhole) {
  EXPECT_EQ(ParseInteger("-12"), -12);
  EXPECT_EQ(ParseNumber("2.5"), 2.5);
  for (const char* text : {"", "x", "1x", "1.5", " 1", "99999999999999999999", "0x10"}) {
    ExpectError([&] { ParseInteger(text); }, ErrorCategory::kInput, "'" + std::string(text) + "' is not an integer");
  }
  for (const char* text : {"", "x", "1x", "1e999"}) {
    ExpectError([&] { ParseNumber(text); }, ErrorCategory::kInput, "'" + std::string(text) + "' is not a number");
  }
}

TEST(ArgumentText, ReadsDurationsInAllUnits) {
  EXPECT_EQ(ParseDuration("90"), 90);
  EXPECT_EQ(ParseDuration("500ms"), 0.5);
  EXPECT_EQ(ParseDuration("1.5s"), 1.5);
  EXPECT_EQ(ParseDuration("10m"), 600);
  EXPECT_EQ(ParseDuration("2h"), 7200);
  EXPECT_EQ(ParseDuration("90d"), 90 * 86400);
  for (const char* text : {"", "soon", "-1s", "nan", "inf", "1w", "1 s", "1e308d", "101000d"}) {
    ExpectError([&] { ParseDuration(text); }, ErrorCategory::kInput, "malformed duration '" + std::string(text) + "'");
  }
}

TEST(ArgumentText, WritesDurationsAsTheyAreRead) {
  for (const char* text : {"0s", "500ms", "90s", "1m", "30m", "2h", "3d"}) {
    EXPECT_EQ(FormatDuration(ParseDuration(text)), text);
  }
}

TEST(ArgumentText, ReadsAndWritesBytes) {
  EXPECT_EQ(ParseBytes("0"), 0);
  EXPECT_EQ(ParseBytes("500MB"), 500'000'000);
  EXPECT_EQ(ParseBytes("1.5KiB"), 1536);
  for (const char* text : {"0", "1000", "1KiB", "12GiB"}) EXPECT_EQ(FormatBinaryBytes(ParseBytes(text)), text);
  for (const char* text : {"", "x", "-1", "nan", "1Gb", "1e30", "2000000TiB"}) {
    ExpectError([&] { ParseBytes(text); }, ErrorCategory::kInput,
                "malformed number of bytes '" + std::string(text) + "'");
  }
}

TEST(ArgumentText, SplitsAtCommasAndDropsEmptyParts) {
  EXPECT_EQ(SplitCommas("a,b"), (Names{"a", "b"}));
  EXPECT_EQ(SplitCommas(",a,,b,"), (Names{"a", "b"}));
  EXPECT_TRUE(SplitCommas("").empty());
  EXPECT_TRUE(SplitCommas(",").empty());
}

TEST(ArgumentText, ReadsShapesByName) {
  EXPECT_EQ(ParseShapes({"x=1x3x640", "a=b=2", "s="}), (Shapes{{"x", {1, 3, 640}}, {"a=b", {2}}, {"s", {}}}));
  EXPECT_EQ(ParseShapes({"x=?x4", "y=1x?"}), (Shapes{{"x", {-1, 4}}, {"y", {1, -1}}}));
  for (const char* text :
       {"", "x", "=1", "x=-1", "x=1x", "x=x1", "x=1xabc", "x=1y2", "x=99999999999999999999", "x=??", "x=1?", "x=?1"}) {
    ExpectError([&] { ParseShapes({text}); }, ErrorCategory::kInput, "malformed shape '" + std::string(text) + "'");
  }
  ExpectError([] { ParseShapes({"x=1", "x=2"}); }, ErrorCategory::kInput, "the shape of 'x' is given twice");
}

TEST(ArgumentText, ReadsSizesByName) {
  EXPECT_EQ(ParseSizes({"sequence=16,128", "x[0]=1"}), (Shapes{{"sequence", {16, 128}}, {"x[0]", {1}}}));
  for (const char* text : {"", "x", "x=", "=1", "x=-1", "x=1,", "x=,1", "x=1x2", "x=1,b"}) {
    ExpectError([&] { ParseSizes({text}); }, ErrorCategory::kInput, "malformed sizes '" + std::string(text) + "'");
  }
  ExpectError([] { ParseSizes({"x=1", "x=2"}); }, ErrorCategory::kInput, "sizes of 'x' are given twice");
}

TEST(ArgumentText, ReadsDimensionsByName) {
  EXPECT_EQ(ParseDimensions({"batch=1", "sequence=1..512", "x[0]=7"}),
            (Shapes{{"batch", {1}}, {"sequence", {1, 512}}, {"x[0]", {7}}}));
  for (const char* text :
       {"batch", "=1", "batch=", "batch=1,2", "batch=1..", "batch=..2", "batch=1..2..3", "batch=-1"}) {
    ExpectError([&] { ParseDimensions({text}); }, ErrorCategory::kInput, "malformed sizes '" + std::string(text) + "'");
  }
  ExpectError([] { ParseDimensions({"x=1", "x=2"}); }, ErrorCategory::kInput, "the size of 'x' is given twice");
}

}  // namespace
}  // namespace collage
