#include "viewers/node_placements.h"

#include <gtest/gtest.h>

#include "unit/viewers/two_partitions.h"

namespace collage {
namespace {

TEST_F(ViewersTest, TimeBelongsToNodesByTheirProducts) {
  const std::map<std::string, NodePlacement> placements = PlacementsOf(*viewed_);
  EXPECT_NEAR(*placements.at("a").seconds, 4e-6, 1e-12) << "all products are its";
  EXPECT_NEAR(*placements.at("b").seconds, 0.5e-6, 1e-12) << "half of a partition without products";
  EXPECT_NEAR(*placements.at("c").seconds, 0.5e-6, 1e-12);
  EXPECT_EQ(placements.at("b").toolchains, (std::vector<std::string>{"test", "other"}));
  EXPECT_EQ(placements.at("b").partitions, (std::vector<std::string>{"0", "1"}));
  EXPECT_NEAR(*placements.at("b").partition_seconds, 5e-6, 1e-12);
  EXPECT_FALSE(placements.contains("d"));
}

}  // namespace
}  // namespace collage
