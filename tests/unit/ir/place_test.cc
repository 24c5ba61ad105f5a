// place_test.cc: the names that reports give to a model's nodes.
#include "ir/place.h"

#include <gtest/gtest.h>

#include "collage/ir/module.h"
#include "collage/ir/text.h"

namespace collage {
namespace {

TEST(SourceNodesTest, NodesOfATextAreToldApartByTheirPlaces) {
  const IRModule module = ParseModule("def @main(%x: Tensor[(2), float32]) { nn.relu(exp(%x)) }", "m.relay");
  const std::vector<std::string> places = SourceNodes(module.main());
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0], "m.relay:1:47");
  EXPECT_EQ(places[1], "m.relay:1:39");
}

TEST(PlaceOfTest, AnOnnxNodeIsItsName) {
  EXPECT_EQ(PlaceOf(Span{"conv_1", 0, 0}), "conv_1");
  EXPECT_EQ(PlaceOf(Span{}), "");
}

}  // namespace
}  // namespace collage
