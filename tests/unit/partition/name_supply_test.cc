#include "partition/name_supply.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(NameSupplyTest, NamesAreCleanAndDistinct) {
  NameSupply names("collage");
  EXPECT_EQ(names.Fresh({"dnnl", "nn.conv2d+add"}), "collage_dnnl_nn_conv2d_add");
  EXPECT_EQ(names.Fresh({"dnnl", "", "nn.conv2d+add"}), "collage_dnnl_nn_conv2d_add_1");
  EXPECT_EQ(names.Fresh({"dnnl", "nn.conv2d+add"}), "collage_dnnl_nn_conv2d_add_2");
  EXPECT_EQ(NameSupply().Fresh({"2x"}), "_2x");
  EXPECT_EQ(NameSupply().Fresh({}), "_");
}

TEST(NameSupplyTest, NumberedNamesDoNotClashWithGivenOnes) {
  NameSupply names;
  names.Reserve("main");
  EXPECT_EQ(names.Fresh({"a", "1"}), "a_1");
  EXPECT_EQ(names.Fresh({"a"}), "a");
  EXPECT_EQ(names.Fresh({"a"}), "a_2");
  EXPECT_EQ(names.Fresh({"main"}), "main_1");
}

}  // namespace
}  // namespace collage
