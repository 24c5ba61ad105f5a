// strings_test.cc: attributes of functions say which of their tensors are strings.
#include "collage/ir/strings.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(StringTensors, AttributesHoldThem) {
  const StringTensors strings({"cat", "dog"}, {1}, {0, 2});
  Attrs attrs;
  strings.AddTo(attrs);
  const StringTensors read(attrs);
  EXPECT_EQ(read.known().texts(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_FALSE(read.IsParam(0));
  EXPECT_TRUE(read.IsParam(1));
  EXPECT_TRUE(read.IsResult(0));
  EXPECT_FALSE(read.IsResult(1));
  EXPECT_TRUE(read.IsResult(2));
}

TEST(StringTensors, ThereIsNothingToSayOfAFunctionOfNumbers) {
  Attrs attrs;
  StringTensors({"of a constant that nothing returns"}, {}, {}).AddTo(attrs);
  EXPECT_TRUE(attrs.empty());
  EXPECT_TRUE(StringTensors(attrs).empty());
}

TEST(StringTensors, ValuesOfAnotherFormCountAsNone) {
  const Attrs attrs{
      {kAttrStrings, AttrValue::List{1}}, {kAttrStringParams, "x"}, {kAttrStringResults, AttrValue::List{"y"}}};
  EXPECT_TRUE(StringTensors(attrs).empty());
  EXPECT_TRUE(StringTensors(attrs).known().texts().empty());
}

}  // namespace
}  // namespace collage
