// rounds_test.cc
#include "driver/play_off/rounds.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace collage {
namespace {

/// Times of contestants that take `factors`, each run with `noise`, on a machine that is half as fast again at times.
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

TEST(RoundsTest, AMachineThatIsSlowForSomeRoundsDoesNotHideWhoIsFaster) {
  const std::vector<Samples> rounds = Timed({1.02, 1.0, 1.05}, 0.002, 40);
  EXPECT_NEAR(RelativeToRounds(rounds, 0) / RelativeToRounds(rounds, 1), 1.02, 0.003);
  EXPECT_NEAR(RelativeToRounds(rounds, 2) / RelativeToRounds(rounds, 1), 1.05, 0.003);
}

TEST(RoundsTest, ClearDifferencesAreToldApart) { EXPECT_TRUE(AreToldApart(Timed({1.0, 1.03, 1.2}, 0.01, 40))); }

TEST(RoundsTest, EqualOnesAreToldFromTheRestOnceTheirDifferenceIsKnownToBeSmall) {
  EXPECT_FALSE(AreToldApart(Timed({1.0, 1.0}, 0.02, 20)));
  EXPECT_TRUE(AreToldApart(Timed({1.0, 1.0}, 0.002, 60)));
}

TEST(RoundsTest, FewRoundsTellNothing) { EXPECT_FALSE(AreToldApart(Timed({1.0, 2.0}, 0.0, 3))); }

TEST(RoundsTest, OneContestantIsToldApart) { EXPECT_TRUE(AreToldApart(Timed({1.0}, 0.1, 3))); }

}  // namespace
}  // namespace collage
