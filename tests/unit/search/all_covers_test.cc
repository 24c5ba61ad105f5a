#include "search/all_covers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/search/indices_of.h"

namespace collage {
namespace {

using testing_search::Positions;

/// A chain of positions with a variant for each of them and for each two neighbours.
CoverProblem Chain(int length) {
  CoverProblem problem;
  problem.num_positions = length;
  for (int p = 0; p < length; ++p) {
    problem.variants.push_back({.covers = Positions({p})});
    if (p + 1 < length) problem.variants.push_back({.covers = Positions({p, p + 1})});
  }
  return problem;
}

bool Any(VariantIndex) { return true; }

TEST(AllCoversTest, AreTheWaysToTileAChain) {
  const std::vector<int64_t> ways{1, 1, 2, 3, 5, 8, 13, 21, 34, 55};  // by length
  for (int length = 1; length < static_cast<int>(ways.size()); ++length) {
    SCOPED_TRACE(length);
    std::vector<std::vector<int>> seen;
    const auto add = [&](const std::vector<VariantIndex>& variants) { seen.push_back(NumbersOf(variants)); };
    EXPECT_TRUE(ForEachCover(Chain(length), Any, {.max_covers = 1000}, add));
    EXPECT_EQ(static_cast<int64_t>(seen.size()), ways[static_cast<size_t>(length)]);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  }
}

TEST(AllCoversTest, AreOfWhatCanBeRun) {
  std::vector<std::vector<int>> seen;
  const auto add = [&](const std::vector<VariantIndex>& variants) { seen.push_back(NumbersOf(variants)); };
  // Variants 0: {0}, 1: {0, 1}, 2: {1}, 3: {1, 2}, 4: {2}.
  EXPECT_TRUE(ForEachCover(
      Chain(3), [](VariantIndex variant) { return variant != VariantIndex(2); }, {.max_covers = 9}, add));
  EXPECT_EQ(seen, (std::vector<std::vector<int>>{{0, 3}, {1, 4}}));
}

TEST(AllCoversTest, EndsAtItsLimits) {
  int64_t count = 0;
  const auto add = [&](const std::vector<VariantIndex>&) { ++count; };
  EXPECT_TRUE(ForEachCover(Chain(5), Any, {.max_covers = 8}, add));
  EXPECT_EQ(count, 8);
  count = 0;
  EXPECT_FALSE(ForEachCover(Chain(5), Any, {.max_covers = 7}, add));
  EXPECT_EQ(count, 7);
  count = 0;
  EXPECT_FALSE(ForEachCover(Chain(5), Any, {.max_covers = 100, .max_steps = 10}, add));
  // The last position cannot be covered: no cover is found however long it takes.
  const auto not_last = [](VariantIndex variant) { return variant.number() < 2 * 400 - 3; };
  count = 0;
  EXPECT_FALSE(ForEachCover(Chain(400), not_last, {.max_covers = 24}, add));
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace collage
