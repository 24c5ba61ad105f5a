// object_file_test.cc: linkers read what is written.
#include "emit/object_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/file.h"
#include "support/programs/run_tool.h"

namespace collage {
namespace {

std::string Listed(const std::vector<std::string>& words) {
  const ToolResult result = RunTool(words);
  EXPECT_EQ(result.status, 0) << result.output;
  return result.output;
}

TEST(DataObject, HasTheDataBetweenTwoSymbols) {
  const std::string data = "what lies inside";
  const TemporaryFolder folder;
  const std::string file = (folder / "data.o").string();
  WriteFile(file, DataObject(std::as_bytes(std::span(data.data(), data.size())), "model"));
  EXPECT_EQ(Listed({"nm", file}), "0000000000000000 R model_begin\n0000000000000010 R model_end\n");
  EXPECT_THAT(Listed({"readelf", "-p", ".rodata.collage", file}), testing::HasSubstr(data));
  EXPECT_THAT(Listed({"readelf", "-SW", file}), testing::ContainsRegex("rodata.collage +PROGBITS.* A +0 +0 +64"));
  EXPECT_EQ(Listed({"ld", "-r", "-o", (folder / "linked.o").string(), file}), "");
}

TEST(DataObject, MayBeEmpty) {
  const TemporaryFolder folder;
  const std::string file = (folder / "data.o").string();
  WriteFile(file, DataObject({}, "none"));
  EXPECT_EQ(Listed({"nm", file}), "0000000000000000 R none_begin\n0000000000000000 R none_end\n");
}

}  // namespace
}  // namespace collage
