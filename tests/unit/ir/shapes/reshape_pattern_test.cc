// Reshapes to symbolic sizes as graph formats say them.
#include "ir/shapes/reshape_pattern.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

using V = std::vector<int64_t>;
using Dims = std::vector<Dim>;
constexpr int64_t kFromShape = ReshapePattern::kFromShape;

const Dim kBatch = Dim::Of(SymbolicSize::Symbol("batch", 0));
const Dim kLength = Dim::Of(SymbolicSize::Symbol("length", 1));

V SizesOf(const Dims& from, const Dims& to, const V& codes = {}) {
  const auto pattern = FindReshapePattern(from, to, codes);
  return pattern ? pattern->sizes : V{-99};
}

TEST(ReshapePatternTest, CopiesBySymbolsAndByCodes) {
  EXPECT_EQ(SizesOf({kBatch, kLength, 32}, {kBatch, kLength, 4, 8}), (V{0, 0, 4, 8}));
  EXPECT_EQ(SizesOf({Dim::Any(), Dim::Any(), 32}, {Dim::Any(), Dim::Any(), 4, 8}, {0, 0, -4, 4, 8}), (V{0, 0, 4, 8}));
  EXPECT_EQ(SizesOf({Dim::Any(), Dim::Any()}, {Dim::Any(), Dim::Any()}, {-2}), (V{0, 0}));
}

TEST(ReshapePatternTest, OneSizeFollowsFromTheOthers) {
  EXPECT_EQ(SizesOf({kBatch, kLength, 32}, {Dim::Any(), 32}), (V{-1, 32}));
  EXPECT_EQ(SizesOf({kBatch, 4, kLength}, {kBatch, kLength}), (V{0, -1}));
}

TEST(ReshapePatternTest, MovedSizesComeFromTheShape) {
  // Heads join the batch: the length moves to the front.
  const auto pattern = FindReshapePattern({kBatch, 4, kLength, 8}, {Dim::Any(), kLength, 8}, {-3, 0, 0});
  ASSERT_TRUE(pattern.has_value());
  EXPECT_EQ(pattern->sizes, (V{-1, kFromShape, 8}));
  EXPECT_EQ(pattern->dims[1], 2);
  EXPECT_TRUE(pattern->needs_shape());
}

TEST(ReshapePatternTest, TwoUnknownSizesHaveNone) {
  EXPECT_EQ(SizesOf({Dim::Any(), 32}, {Dim::Any(), Dim::Any(), 32}), (V{-99}));
}

TEST(ReshapePatternTest, StaticShapesAreNumbers) { EXPECT_EQ(SizesOf({6, 4}, {2, 12}), (V{2, 12})); }

}  // namespace
}  // namespace collage
