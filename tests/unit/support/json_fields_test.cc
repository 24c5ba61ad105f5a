#include "support/json_fields.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

namespace collage {
namespace {

enum class Colour : uint8_t { kRed, kGreen };
constexpr std::array<const char*, 2> NamesOf(Colour) { return {"red", "green"}; }

struct Spot {
  int place = 0;
  Colour colour = Colour::kRed;
};

template <typename Self, typename Visitor>
requires IsMessage<Self, Spot>
void VisitFields(Self& spot, Visitor& visit) {
  visit.Field("place", spot.place);
  visit.Field("colour", spot.colour);
}

struct Picture {
  std::string name;
  std::vector<Spot> spots;
  std::vector<int64_t> shape;
  std::map<std::string, int> counts;
  double error = 0;
  std::string note;
};

template <typename Self, typename Visitor>
requires IsMessage<Self, Picture>
void VisitFields(Self& picture, Visitor& visit) {
  visit.Field("name", picture.name);
  visit.Field("spots", picture.spots);
  visit.Field("shape", picture.shape);
  visit.Field("counts", picture.counts);
  visit.Field("error", picture.error);
  visit.OptionalField("note", picture.note);
}

TEST(JsonFieldsTest, StructsAreReadBack) {
  const Picture picture{"a \"b\"", {{3, Colour::kGreen}, {4, Colour::kRed}}, {1, 64}, {{"x", 2}}, 0.1, ""};
  const std::string text = ToJsonText(picture);
  EXPECT_EQ(text, R"({"counts":{"x":2},"error":0.1,"name":"a \"b\"","shape":[1,64],)"
                  R"("spots":[{"colour":"green","place":3},{"colour":"red","place":4}]})");
  const auto read = FromJsonText<Picture>(text);
  EXPECT_EQ(read.name, picture.name);
  ASSERT_EQ(read.spots.size(), 2U);
  EXPECT_EQ(read.spots[0].place, 3);
  EXPECT_EQ(read.spots[0].colour, Colour::kGreen);
  EXPECT_EQ(read.shape, picture.shape);
  EXPECT_EQ(read.counts, picture.counts);
  EXPECT_EQ(ToJsonText(read), text);
}

TEST(JsonFieldsTest, InfinityIsTheLargestNumberAndBytesThatAreNoTextAreReplaced) {
  Picture picture;
  picture.error = std::numeric_limits<double>::infinity();
  picture.name = "\xff";
  const auto read = FromJsonText<Picture>(ToJsonText(picture));
  EXPECT_EQ(read.error, std::numeric_limits<double>::max());
  EXPECT_EQ(read.name, "\xEF\xBF\xBD");
}

TEST(JsonFieldsTest, MissingFieldsAndUnknownNamesAreErrors) {
  EXPECT_THROW(FromJsonText<Spot>(R"({"place": 1})"), nlohmann::json::exception);
  EXPECT_THROW(FromJsonText<Spot>(R"({"place": "1", "colour": "red"})"), nlohmann::json::exception);
  EXPECT_THROW(FromJsonText<Spot>(R"({"place": 1, "colour": "blue"})"), Error);
}

}  // namespace
}  // namespace collage
