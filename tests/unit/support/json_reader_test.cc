#include "support/json_reader.h"

#include <gtest/gtest.h>

#include "collage/support/error.h"

namespace collage {
namespace {

std::string Place(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kInput);
    return error.where();
  }
  return "nothing thrown";
}

TEST(JsonReaderTest, ErrorsNameLineAndColumn) {
  const JsonReader json =
      JsonReader::Parse("{\n  \"a\": [1, {\"b\\\"c\": \"x\"}], // note\n  \"d\": true\n}", "f.json");
  EXPECT_EQ(Place([&] { json.At("a").Items()[1].At("b\"c").Number(); }), "f.json:2:21");
  EXPECT_EQ(Place([&] { json.At("d").String(); }), "f.json:3:8");
  EXPECT_EQ(Place([&] { json.At("e"); }), "f.json:1:1");
  EXPECT_EQ(Place([&] { json.AllowOnly({"a"}); }), "f.json:3:8");
  EXPECT_EQ(Place([] { JsonReader::Parse("{\"a\": 1,\n \"b\": }", "g.json"); }), "g.json:2:7");
  EXPECT_EQ(Place([] { JsonReader::Parse("", "g.json"); }), "g.json:1:1");
}

TEST(JsonReaderTest, NumbersThatNoDoubleHoldsAreErrorsWithTheirPlace) {
  EXPECT_EQ(Place([] { JsonReader::Parse("{\"a\": [1,\n 1e999]}", "f.json"); }), "f.json:2:2");
  EXPECT_EQ(Place([] { JsonReader::Parse("[\"1e999\", /* 1e999 */ // 1e999\n -2E+400]", "f.json"); }), "f.json:2:2");
  const std::string digits(1000, '9');
  EXPECT_EQ(Place([&] { JsonReader::Parse("  " + digits, "f.json"); }), "f.json:1:3");
  EXPECT_EQ(JsonReader::Parse("1e-999", "f.json").Number(), 0);
}

TEST(JsonReaderTest, KindsAreChecked) {
  const JsonReader json = JsonReader::Parse(R"({"n": 1.5, "i": 3, "s": "x", "b": false, "l": []})", "f");
  EXPECT_EQ(json.IntOr("i", 0, 0, 9), 3);
  EXPECT_EQ(json.NumberOr("n", 0), 1.5);
  EXPECT_EQ(json.StringOr("s", ""), "x");
  EXPECT_FALSE(json.BoolOr("b", true));
  EXPECT_TRUE(json.BoolOr("absent", true));
  EXPECT_TRUE(json.At("l").Items().empty());
  EXPECT_THROW(json.IntOr("n", 0, 0, 9), Error);
  EXPECT_THROW(json.IntOr("i", 0, 0, 2), Error);
  EXPECT_THROW(json.At("l").Fields(), Error);
  EXPECT_THROW(json.At("s").Bool(), Error);
}

TEST(JsonReaderTest, AmbiguousAndDeepTextsAreRefused) {
  EXPECT_THROW(JsonReader::Parse(R"({"a": 1, "a": 2})", "f"), Error);
  EXPECT_THROW(JsonReader::Parse(std::string(100'000, '['), "f"), Error);
}

}  // namespace
}  // namespace collage
