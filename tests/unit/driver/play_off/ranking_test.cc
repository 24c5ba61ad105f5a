#include "driver/play_off/ranking.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace collage {
namespace {

/// Times of contenders that take `factors`, each run with `noise`, on a machine that is half as fast again at times.
std::vector<Samples> Timed(const std::vector<double>& factors, double noise, int rounds) {
  std::mt19937 random(3);
  std::normal_distribution<double> spread(0, noise);
  std::vector<Samples> samples(factors.size());
  for (int round = 0; round < rounds; ++round) {
    const double machine = round % 7 < 3 ? 1.5 : 1.0;
    for (size_t i = 0; i < factors.size(); ++i) samples[i].Add(machine * factors[i] * (1 + spread(random)));
  }
  return samples;
}

TEST(RankingTest, AMachineThatIsSlowForSomeRoundsDoesNotHideWhoIsFaster) {
  const std::vector<Samples> rounds = Timed({1.02, 1.0, 1.05}, 0.002, 40);
  EXPECT_NEAR(RelativeToRounds(rounds, 0) / RelativeToRounds(rounds, 1), 1.02, 0.003);
  EXPECT_NEAR(RelativeToRounds(rounds, 2) / RelativeToRounds(rounds, 1), 1.05, 0.003);
}

TEST(RankingTest, ClearDifferencesNeedFewRounds) { EXPECT_TRUE(RoundsSuffice(Timed({1.0, 1.03, 1.2}, 0.01, 40))); }

TEST(RankingTest, EqualOnesAreToldFromTheRestOnceTheirDifferenceIsKnownToBeSmall) {
  EXPECT_FALSE(RoundsSuffice(Timed({1.0, 1.0}, 0.02, 20)));
  EXPECT_TRUE(RoundsSuffice(Timed({1.0, 1.0}, 0.002, 60)));
}

TEST(RankingTest, ADifferenceAtTheThresholdNeedNotBeSettled) {
  EXPECT_FALSE(RoundsSuffice(Timed({1.0, 1.005}, 0.02, 40)));
  EXPECT_TRUE(RoundsSuffice(Timed({1.0, 1.005}, 0.001, 40)));
}

TEST(RankingTest, FewRoundsTellNothing) { EXPECT_FALSE(RoundsSuffice(Timed({1.0, 2.0}, 0.0, 3))); }

TEST(RankingTest, OneContenderIsDistinct) { EXPECT_TRUE(RoundsSuffice(Timed({1.0}, 0.1, 3))); }

TEST(RankingTest, FinalistsAreClearOnceTheOthersAreCertainlyTooSlow) {
  EXPECT_TRUE(FinalistsAreClear(Timed({1.0, 1.01, 1.2}, 0.01, 20))) << "two of them, whoever wins";
  EXPECT_FALSE(FinalistsAreClear(Timed({1.0, 1.04, 1.2}, 0.04, 20)));
  EXPECT_FALSE(FinalistsAreClear(Timed({1.0, 2.0}, 0.0, 3))) << "too few rounds";
}

TEST(RankingTest, FinalistsAreThoseThatAreNotCertainlyTooSlow) {
  EXPECT_EQ(Finalists(Timed({1.2, 1.01, 1.0}, 0.005, 20)), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(Finalists(Timed({1.04, 1.0}, 0.1, 8)), (std::vector<size_t>{1, 0})) << "it may be as fast";
  EXPECT_EQ(Finalists(Timed({1.05, 1.04, 1.03, 1.02, 1.01, 1.0}, 0.05, 20)).size(), kMaxFinalists);
}

Contender Ran(double relative, std::map<std::string, int> partitions, bool is_finalist = true) {
  Contender contender;
  contender.relative = relative;
  contender.partitions = std::move(partitions);
  contender.is_finalist = is_finalist;
  return contender;
}

using Indices = std::vector<size_t>;

TEST(RankedTest, TheFastestIsFirst) {
  EXPECT_EQ(Ranked(std::vector{Ran(1.2, {{"a", 1}}), Ran(0.9, {{"a", 3}, {"b", 2}}), Ran(1.0, {{"b", 1}})}),
            (Indices{1, 2, 0}));
}

TEST(RankedTest, OfThoseAsGoodTheOneOfFewestToolchainsIsFirst) {
  // As good as the fastest, and better than the last by more.
  EXPECT_EQ(Ranked(std::vector{Ran(1.0, {{"a", 3}, {"b", 2}}), Ran(1.003, {{"b", 9}}), Ran(1.02, {{"a", 1}})}),
            (Indices{1, 0, 2}));
  EXPECT_EQ(Ranked(std::vector{Ran(1.0, {{"a", 3}, {"b", 2}}), Ran(1.006, {{"b", 9}})}), (Indices{0, 1}));
}

TEST(RankedTest, TheFinalDecidesBeforeTheFirstRounds) {
  EXPECT_EQ(Ranked(std::vector{Ran(0.8, {{"a", 1}}, false), Ran(1.0, {{"a", 1}, {"b", 1}})}), (Indices{1, 0}));
}

TEST(RankedTest, FailuresHaveNoRank) {
  std::vector<Contender> contenders{Ran(0.5, {{"a", 1}}), Ran(1.0, {{"b", 1}})};
  contenders[0].failure = "wrong result";
  EXPECT_EQ(Ranked(contenders), (Indices{1}));
  contenders[1].failure = "crashed";
  EXPECT_TRUE(Ranked(contenders).empty());
}

TEST(SecondsBesideTest, ComparesByTheRoundsInWhichBothRan) {
  Contender winner = Ran(0.98, {});
  winner.p50 = 2.0;  // of the first rounds and of a final in which the machine was slower
  winner.first_relative = 0.9;
  Contender finalist = Ran(1.02, {});
  finalist.p50 = 2.1;
  finalist.first_relative = 0.89;
  EXPECT_DOUBLE_EQ(SecondsBeside(finalist, winner), 2.0 * 1.02 / 0.98);
  Contender other = Ran(1.1, {}, false);
  other.p50 = 1.9;  // of the first rounds alone
  other.first_relative = 1.1;
  EXPECT_DOUBLE_EQ(SecondsBeside(other, winner), 2.0 * 1.1 / 0.9);
  EXPECT_DOUBLE_EQ(SecondsBeside(winner, winner), 2.0);
}

}  // namespace
}  // namespace collage
