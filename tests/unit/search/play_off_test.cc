#include "search/play_off.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace collage {
namespace {

Contestant Timed(double relative, std::map<std::string, int> partitions, bool is_finalist = true) {
  Contestant contestant;
  contestant.relative = relative;
  contestant.partitions = std::move(partitions);
  contestant.is_finalist = is_finalist;
  return contestant;
}

using Indices = std::vector<size_t>;

TEST(RankedTest, TheFastestIsFirst) {
  EXPECT_EQ(Ranked(std::vector{Timed(1.2, {{"a", 1}}), Timed(0.9, {{"a", 3}, {"b", 2}}), Timed(1.0, {{"b", 1}})}),
            (Indices{1, 2, 0}));
}

TEST(RankedTest, OfThoseAsGoodTheOneOfFewestToolchainsIsFirst) {
  // As good as the fastest, and better than the last by more.
  EXPECT_EQ(Ranked(std::vector{Timed(1.0, {{"a", 3}, {"b", 2}}), Timed(1.003, {{"b", 9}}), Timed(1.02, {{"a", 1}})}),
            (Indices{1, 0, 2}));
  EXPECT_EQ(Ranked(std::vector{Timed(1.0, {{"a", 3}, {"b", 2}}), Timed(1.006, {{"b", 9}})}), (Indices{0, 1}));
}

TEST(RankedTest, TheFinalDecidesBeforeTheFirstRounds) {
  EXPECT_EQ(Ranked(std::vector{Timed(0.8, {{"a", 1}}, false), Timed(1.0, {{"a", 1}, {"b", 1}})}), (Indices{1, 0}));
}

TEST(RankedTest, FailuresHaveNoRank) {
  std::vector<Contestant> contestants{Timed(0.5, {{"a", 1}}), Timed(1.0, {{"b", 1}})};
  contestants[0].failure = "wrong result";
  EXPECT_EQ(Ranked(contestants), (Indices{1}));
  contestants[1].failure = "crashed";
  EXPECT_TRUE(Ranked(contestants).empty());
}

}  // namespace
}  // namespace collage
