#include "search/strategies/evolution.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(EvolutionTest, FindsThePatternWithoutTryingEverything) {
  // 24 genes of three alleles; two alleles at wrong neighbours cannot be run at all.
  const std::vector<int> num_alleles(24, 3);
  std::set<Genome> tried;
  const auto fitness = [&](const Genome& genome) {
    EXPECT_TRUE(tried.insert(genome).second) << "asked for twice";
    double wrong = 0;
    for (size_t i = 0; i < genome.size(); ++i) {
      EXPECT_LT(genome[i], 3);
      if (i > 0 && genome[i] == 2 && genome[i - 1] == 1) return kInfinity;
      wrong += genome[i] == (i < 12 ? 2 : 1) ? 0 : 1;
    }
    return wrong;
  };
  EvolutionOptions options;
  options.max_evaluations = 6000;
  options.max_generations = 1000;
  const EvolutionResult result = Evolve(num_alleles, {}, options, fitness);
  EXPECT_LE(result.fitness, 1);
  EXPECT_EQ(result.num_evaluations, static_cast<int64_t>(tried.size()));
  EXPECT_LE(result.num_evaluations, 6000);
}

TEST(EvolutionTest, TheSameSeedGivesTheSameResult) {
  const auto fitness = [](const Genome& genome) {
    double sum = 0;
    for (size_t i = 0; i < genome.size(); ++i)
      sum += static_cast<double>((genome[i] * 7 + static_cast<int>(i) * 5) % 11);
    return sum;
  };
  EvolutionOptions options;
  options.max_generations = 5;
  const EvolutionResult first = Evolve(std::vector<int>(30, 4), {}, options, fitness);
  const EvolutionResult again = Evolve(std::vector<int>(30, 4), {}, options, fitness);
  EXPECT_EQ(first.best, again.best);
  EXPECT_EQ(first.num_evaluations, again.num_evaluations);
  options.seed = 65;
  EXPECT_NE(Evolve(std::vector<int>(30, 4), {}, options, fitness).num_evaluations, first.num_evaluations);
}

TEST(EvolutionTest, IsNeverWorseThanZerosAndSeeds) {
  const Genome special{1, 0, 1, 1, 0};
  const auto fitness = [&](const Genome& genome) {
    return genome == special ? 1.0 : genome == Genome(5, 0) ? 2.0 : 3.0;
  };
  EvolutionOptions options;
  options.population = 2;
  options.max_generations = 0;
  EXPECT_EQ(Evolve(std::vector<int>(5, 2), {special}, options, fitness).best, special);
  EXPECT_EQ(Evolve(std::vector<int>(5, 2), {}, options, fitness).fitness, 2);
}

TEST(EvolutionTest, WithoutChoiceNothingIsTriedTwice) {
  int num_asked = 0;
  const auto fitness = [&](const Genome&) { return static_cast<double>(++num_asked); };
  EXPECT_EQ(Evolve({1, 1, 1}, {}, {}, fitness).fitness, 1);
  EXPECT_EQ(num_asked, 1);
  EXPECT_EQ(Evolve({}, {}, {}, fitness).best, Genome{});
}

}  // namespace
}  // namespace collage
