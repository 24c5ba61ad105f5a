#include "driver/play_off/play_off.h"

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

TEST(SecondsBesideTest, ComparesByTheRoundsInWhichBothRan) {
  Contestant winner = Timed(0.98, {});
  winner.p50 = 2.0;  // of the first rounds and of a final in which the machine was slower
  winner.first_relative = 0.9;
  Contestant finalist = Timed(1.02, {});
  finalist.p50 = 2.1;
  finalist.first_relative = 0.89;
  EXPECT_DOUBLE_EQ(SecondsBeside(finalist, winner), 2.0 * 1.02 / 0.98);
  Contestant other = Timed(1.1, {}, false);
  other.p50 = 1.9;  // of the first rounds alone
  other.first_relative = 1.1;
  EXPECT_DOUBLE_EQ(SecondsBeside(other, winner), 2.0 * 1.1 / 0.9);
  EXPECT_DOUBLE_EQ(SecondsBeside(winner, winner), 2.0);
}

}  // namespace
}  // namespace collage
