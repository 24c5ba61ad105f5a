// cover_search_test.cc: every exact search equals the enumeration of all covers on random problems: cost, ties, and the
// k best ones.
#include "search/strategies/cover_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "property/random_cover_problem.h"
#include "search/least_seconds_with.h"
#include "search/strategies/compatible_covers.h"

namespace collage {
namespace {

using testing_covers::RandomProblem;

constexpr size_t kMostCovers = 10'000;

uint32_t NumProblems() {
  const char* text = std::getenv("COLLAGE_PROPERTY_PROBLEMS");
  return text == nullptr ? 3000 : static_cast<uint32_t>(std::atoi(text));
}

/// By what is promised: fewer unknown costs, less cost, then at the first difference lesser priority, lesser variant.
void Sort(const CoverProblem& problem, std::vector<Cover>& covers) {
  const auto rank = [&](VariantIndex v) { return std::pair(problem.variants[v].priority, v); };
  std::sort(covers.begin(), covers.end(), [&](const Cover& a, const Cover& b) {
    if (a.num_unknown != b.num_unknown) return a.num_unknown < b.num_unknown;
    if (a.seconds != b.seconds) return a.seconds < b.seconds;
    return std::lexicographical_compare(a.variants.begin(), a.variants.end(), b.variants.begin(), b.variants.end(),
                                        [&](VariantIndex x, VariantIndex y) { return rank(x) < rank(y); });
  });
}

struct Asked {
  int64_t all = 0;
  int64_t dijkstra = 0, astar = 0, sweep = 0;
};

int64_t& CountOf(Asked& asked, const std::string& strategy) {
  if (strategy == "dijkstra") return asked.dijkstra;
  return strategy == "astar" ? asked.astar : asked.sweep;
}

/// Whether a strategy promises the best cover of this problem: the paper's dynamic programming knows nothing of
/// neighbours.
bool IsExactHere(const std::string& strategy, const testing_covers::RandomProblem& random) {
  return strategy != "dp" || !random.costs.has_switch_penalties();
}

void ExpectSame(const Cover& found, const Cover& expected, bool same_tie) {
  EXPECT_EQ(found.num_unknown, expected.num_unknown);
  EXPECT_EQ(found.seconds, expected.seconds);
  if (same_tie) {
    EXPECT_EQ(found.variants, expected.variants);
  }
}

TEST(CoverSearchTest, EveryExactSearchEqualsTheEnumerationOfAllCovers) {
  Asked asked;
  int num_coverable = 0, num_tied = 0, num_ordered = 0, num_handed_over = 0;
  for (uint32_t seed = 0; seed < NumProblems(); ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(2 + static_cast<int>(seed % 13), seed);
    std::vector<Cover> expected;
    if (!AllCovers(*random, kMostCovers, expected)) continue;
    Sort(random->problem, expected);
    num_coverable += expected.empty() ? 0 : 1;
    num_handed_over += random->costs.has_switch_penalties() ? 1 : 0;
    num_tied += expected.size() > 1 && expected[0].seconds == expected[1].seconds ? 1 : 0;
    for (const CoverVariant& variant : random->problem.variants) num_ordered += variant.members.empty() ? 0 : 1;
    asked.all += static_cast<int64_t>(random->problem.variants.size());
    for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
      SCOPED_TRACE(strategy);
      random->costs.asked.clear();
      const SearchResult found =
          SearchCovers(random->problem, random->costs, {.strategy = strategy, .num_covers = 1, .beam = 0});
      ASSERT_EQ(found.covers.size(), expected.empty() ? 0u : 1u);
      EXPECT_TRUE(found.is_exact);
      EXPECT_EQ(found.num_exact, static_cast<int64_t>(random->costs.asked.size()));
      if (found.covers.empty()) {
        EXPECT_FALSE(found.stuck_at.empty());
        continue;
      }
      if (!IsExactHere(strategy, *random)) {
        EXPECT_GE(std::pair(found.covers[0].num_unknown, found.covers[0].seconds),
                  std::pair(expected[0].num_unknown, expected[0].seconds));
        const auto is_it = [&](const Cover& cover) { return cover.variants == found.covers[0].variants; };
        const auto same = std::find_if(expected.begin(), expected.end(), is_it);
        ASSERT_NE(same, expected.end());
        EXPECT_EQ(found.covers[0].seconds, same->seconds);
        continue;
      }
      ExpectSame(found.covers[0], expected[0], std::string(strategy) != "dp");
      if (std::string(strategy) != "dp" && std::string(strategy) != "exhaustive") {
        CountOf(asked, strategy) += found.num_exact;
      }
    }
    if (::testing::Test::HasFailure()) break;
  }
  std::printf("%d coverable, %d with ties; of %lld costs dijkstra asked for %lld, astar %lld, sweep %lld\n",
              num_coverable, num_tied, static_cast<long long>(asked.all), static_cast<long long>(asked.dijkstra),
              static_cast<long long>(asked.astar), static_cast<long long>(asked.sweep));
  EXPECT_GT(num_coverable, static_cast<int>(NumProblems()) / 4);
  EXPECT_GT(num_tied, num_coverable / 10);
  EXPECT_GT(num_handed_over, num_coverable / 4);
  EXPECT_GT(num_ordered, 100) << "no variants with several exits are tried";
  EXPECT_LT(asked.dijkstra, asked.all);
  EXPECT_LT(asked.astar, asked.dijkstra);
  EXPECT_LT(asked.sweep, asked.astar);
}

TEST(CoverSearchTest, TheBestCoversAreTheLeastOfAllWithinTheSlack) {
  int num_several = 0;
  for (uint32_t seed = 0; seed < NumProblems() / 3; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(2 + static_cast<int>(seed % 11), seed + 1'000'000);
    std::vector<Cover> expected;
    if (!AllCovers(*random, kMostCovers, expected) || expected.empty() || expected[0].num_unknown > 0) continue;
    Sort(random->problem, expected);
    if (expected[0].num_unknown > 0) continue;
    const double slack = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 0.25 : 100;
    const int num_covers = 2 + static_cast<int>(seed % 5);
    std::erase_if(expected, [&, limit = expected[0].seconds * (1 + slack)](const Cover& cover) {
      return cover.seconds > limit || cover.num_unknown > 0;
    });
    if (expected.size() > static_cast<size_t>(num_covers)) expected.resize(static_cast<size_t>(num_covers));
    num_several += expected.size() > 1 ? 1 : 0;
    for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
      if (!IsExactHere(strategy, *random)) continue;
      SCOPED_TRACE(strategy);
      const SearchResult found = SearchCovers(
          random->problem, random->costs, {.strategy = strategy, .num_covers = num_covers, .slack = slack, .beam = 0});
      ASSERT_EQ(found.covers.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ExpectSame(found.covers[i], expected[i], std::string(strategy) != "dp");
      }
    }
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_several, 100);
}

/// Random enmities among the three toolchains of a problem, and the largest sets without any.
struct Enmities {
  explicit Enmities(std::mt19937& random) {
    for (auto [a, b] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
      if (random() % 2 == 0) pairs.insert({a, b});
    }
    for (int set = 7; set > 0; --set) {  // as bits: supersets come first
      const auto has_enemies = [&](const std::pair<int, int>& pair) {
        return (set >> pair.first & 1) != 0 && (set >> pair.second & 1) != 0;
      };
      if (std::any_of(pairs.begin(), pairs.end(), has_enemies)) continue;
      const auto is_within = [&](int other) { return (set & other) == set; };
      if (std::any_of(bits.begin(), bits.end(), is_within)) continue;
      bits.push_back(set);
      std::vector<int>& members = sets.emplace_back();
      for (int toolchain = 0; toolchain < 3; ++toolchain) {
        if ((set >> toolchain & 1) != 0) members.push_back(toolchain);
      }
    }
  }
  bool Meet(const CoverProblem& problem, const Cover& cover) const {
    std::set<int> met;
    for (VariantIndex variant : cover.variants) met.insert(problem.variants[variant].toolchain);
    return std::any_of(pairs.begin(), pairs.end(),
                       [&](const auto& pair) { return met.contains(pair.first) && met.contains(pair.second); });
  }

  std::set<std::pair<int, int>> pairs;
  std::vector<int> bits;
  std::vector<std::vector<int>> sets;
};

TEST(CoverSearchTest, IncompatibleToolchainsNeverMeetAndTheBestOfTheOtherCoversIsFound) {
  int num_dearer = 0, num_impossible = 0;
  for (uint32_t seed = 0; seed < NumProblems() / 3; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(2 + static_cast<int>(seed % 11), seed + 5'000'000);
    std::mt19937 generator(seed);
    const Enmities enmities(generator);
    std::vector<Cover> expected;
    if (!AllCovers(*random, kMostCovers, expected) || expected.empty()) continue;
    Sort(random->problem, expected);
    const Cover unhindered = expected[0];
    std::erase_if(expected, [&](const Cover& cover) { return enmities.Meet(random->problem, cover); });
    for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive", "evolutionary"}) {
      SCOPED_TRACE(strategy);
      const bool is_evolution = std::string(strategy) == "evolutionary";
      SearchOptions options{.strategy = strategy, .num_covers = 1, .beam = 0};
      options.evolution.max_generations = 3;
      const SearchResult found = SearchCompatibleCovers(random->problem, random->costs, options, enmities.sets);
      for (const Cover& cover : found.covers) EXPECT_FALSE(enmities.Meet(random->problem, cover));
      if (is_evolution) continue;  // promises no more
      ASSERT_EQ(found.covers.size(), expected.empty() ? 0u : 1u);
      EXPECT_TRUE(found.is_exact);
      EXPECT_EQ(found.stuck_at.empty(), !expected.empty());
      if (!expected.empty() && IsExactHere(strategy, *random)) {
        ExpectSame(found.covers[0], expected[0], std::string(strategy) != "dp");
      }
    }
    num_impossible += expected.empty() ? 1 : 0;
    num_dearer += !expected.empty() && expected[0].seconds > unhindered.seconds ? 1 : 0;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_dearer, static_cast<int>(NumProblems()) / 60) << "enmities never stand in the way";
  EXPECT_GT(num_impossible, static_cast<int>(NumProblems()) / 150);
}

TEST(CoverSearchTest, TheBestCompatibleCoversAreTheLeastOfAllWithinTheSlack) {
  int num_several = 0;
  for (uint32_t seed = 0; seed < NumProblems() / 6; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(2 + static_cast<int>(seed % 11), seed + 6'000'000);
    std::mt19937 generator(seed);
    const Enmities enmities(generator);
    std::vector<Cover> expected;
    if (!AllCovers(*random, kMostCovers, expected)) continue;
    Sort(random->problem, expected);
    std::erase_if(expected, [&](const Cover& cover) { return enmities.Meet(random->problem, cover); });
    if (expected.empty() || expected[0].num_unknown > 0) continue;
    const double slack = seed % 2 == 0 ? 0.25 : 100;
    std::erase_if(expected, [&, limit = expected[0].seconds * (1 + slack)](const Cover& cover) {
      return cover.seconds > limit || cover.num_unknown > 0;
    });
    constexpr size_t kWanted = 4;
    if (expected.size() > kWanted) expected.resize(kWanted);
    num_several += expected.size() > 1 ? 1 : 0;
    const SearchResult found = SearchCompatibleCovers(
        random->problem, random->costs,
        {.strategy = "sweep", .num_covers = static_cast<int>(kWanted), .slack = slack, .beam = 0}, enmities.sets);
    ASSERT_EQ(found.covers.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ExpectSame(found.covers[i], expected[i], true);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_several, 50);
}

/// Makes the costs of what was asked for so far known at once.
void Remember(testing_covers::TableCosts& costs) {
  for (VariantIndex variant : costs.asked) {
    costs.at_hand.insert(variant);
    const double exact = costs.exact[variant];
    if (!std::isnan(exact)) costs.bounds[variant] = exact;
  }
  costs.asked.clear();
}

TEST(CoverSearchTest, WhatIsAtHandIsWhereASweepBegins) {
  int num_saved = 0;
  for (uint32_t seed = 0; seed < NumProblems() / 3; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(2 + static_cast<int>(seed % 11), seed + 3'000'000);
    std::vector<Cover> expected;
    if (!AllCovers(*random, kMostCovers, expected) || expected.empty()) continue;
    Sort(random->problem, expected);
    testing_covers::TableCosts& costs = random->costs;
    const SearchOptions options{.strategy = "sweep", .num_covers = 1, .beam = 0};
    const SearchResult fresh = SearchCovers(random->problem, costs, options);
    ExpectSame(fresh.covers[0], expected[0], true);
    const auto num_asked = costs.asked.size();
    // Some costs known beforehand, and asked for by threes.
    for (VariantIndex v : costs.exact.indices()) {
      if (v.number() % 2 == 0) costs.asked.insert(v);
    }
    Remember(costs);
    costs.num_at_once = 3;
    ExpectSame(SearchCovers(random->problem, costs, options).covers[0], expected[0], true);
    for (VariantIndex variant : costs.asked) {
      EXPECT_TRUE(costs.at_hand.contains(variant) ||
                  std::find(costs.prepared.begin(), costs.prepared.end(), variant) != costs.prepared.end());
    }
    std::erase_if(costs.asked, [&](VariantIndex variant) { return costs.at_hand.contains(variant); });
    num_saved += costs.asked.size() < num_asked ? 1 : 0;
    // All that was asked for before known: nothing more is.
    Remember(costs);
    ExpectSame(SearchCovers(random->problem, costs, options).covers[0], expected[0], true);
    std::erase_if(costs.asked, [&](VariantIndex variant) { return costs.at_hand.contains(variant); });
    EXPECT_TRUE(costs.asked.empty());
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_saved, 100);
}

TEST(CoverSearchTest, WithAllCostsAtHandASweepFindsTheBestFew) {
  int num_several = 0;
  for (uint32_t seed = 0; seed < NumProblems() / 3; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(2 + static_cast<int>(seed % 11), seed + 5'000'000);
    std::vector<Cover> expected;
    if (!AllCovers(*random, kMostCovers, expected)) continue;
    Sort(random->problem, expected);
    testing_covers::TableCosts& costs = random->costs;
    for (VariantIndex v : costs.exact.indices()) costs.asked.insert(v);
    Remember(costs);
    constexpr size_t kWanted = 3;
    const SearchResult found = SearchCovers(
        random->problem, costs,
        {.strategy = "sweep", .num_covers = kWanted, .slack = 100, .tolerance = seed % 2 * 0.2, .beam = 0});
    EXPECT_TRUE(found.is_exact);
    if (!expected.empty() && expected[0].num_unknown > 0) expected.resize(1);
    const double limit = expected.empty() ? 0 : expected[0].seconds * 101;
    std::erase_if(expected, [&](const Cover& cover) {
      return cover.num_unknown > expected[0].num_unknown || cover.seconds > limit;
    });
    if (expected.size() > kWanted) expected.resize(kWanted);
    ASSERT_GE(found.covers.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ExpectSame(found.covers[i], expected[i], true);
    num_several += expected.size() > 1 ? 1 : 0;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_several, 100);
}

TEST(CoverSearchTest, WithNoTimeLeftTheBestOfWhatIsKnownIsFoundAtOnce) {
  int num_stopped = 0, num_saved = 0;
  for (uint32_t seed = 0; seed < NumProblems() / 3; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(4 + static_cast<int>(seed % 9), seed + 6'000'000);
    std::vector<Cover> expected;
    if (!AllCovers(*random, kMostCovers, expected) || expected.empty()) continue;
    testing_covers::TableCosts& costs = random->costs;
    costs.most_asked = seed % 7;
    const SearchResult found = SearchCovers(random->problem, costs, {.strategy = "sweep", .num_covers = 1, .beam = 0});
    std::erase_if(expected, [&](const Cover& cover) {
      return std::any_of(cover.variants.begin(), cover.variants.end(),
                         [&](VariantIndex variant) { return !costs.asked.contains(variant); });
    });
    ASSERT_EQ(found.covers.empty(), expected.empty());
    Sort(random->problem, expected);
    if (!expected.empty()) ExpectSame(found.covers[0], expected[0], true);
    // No more is asked for in vain than one cover holds.
    EXPECT_LE(costs.num_skipped, random->problem.num_positions);
    num_stopped += costs.num_skipped > 0 ? 1 : 0;
    num_saved += costs.num_skipped > 0 && !expected.empty() ? 1 : 0;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_stopped, 100);
  EXPECT_GT(num_saved, 10);
}

TEST(CoverSearchTest, ToleranceAndLimitSaveAskingAndKeepTheirPromise) {
  int64_t num_exactly = 0, num_tolerantly = 0;
  int num_beyond = 0;
  for (uint32_t seed = 0; seed < NumProblems() / 3; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(4 + static_cast<int>(seed % 9), seed + 4'000'000);
    testing_covers::TableCosts& costs = random->costs;
    SearchOptions options{.strategy = "sweep", .num_covers = 1, .beam = 0};
    const SearchResult exact = SearchCovers(random->problem, costs, options);
    if (exact.covers.empty() || exact.covers[0].num_unknown > 0) continue;
    const double best = exact.covers[0].seconds;
    num_exactly += exact.num_exact;
    costs.asked.clear();
    options.tolerance = 0.2;
    const SearchResult tolerant = SearchCovers(random->problem, costs, options);
    ASSERT_EQ(tolerant.covers.size(), 1u);
    EXPECT_GE(tolerant.covers[0].seconds, best);
    EXPECT_LE(tolerant.covers[0].seconds * (1 - options.tolerance), best);
    num_tolerantly += tolerant.num_exact;
    // Again with what is known now: the same cover, and nothing is asked for.
    Remember(costs);
    const SearchResult again = SearchCovers(random->problem, costs, options);
    EXPECT_LE(again.covers[0].seconds, tolerant.covers[0].seconds);
    std::erase_if(costs.asked, [&](VariantIndex variant) { return costs.at_hand.contains(variant); });
    EXPECT_TRUE(costs.asked.empty());
    options.tolerance = 0;
    options.limit = seed % 2 == 0 ? best : best - 0.5;
    const SearchResult limited = SearchCovers(random->problem, costs, options);
    ASSERT_EQ(limited.covers.size(), seed % 2 == 0 ? 1u : 0u);
    num_beyond += limited.covers.empty() ? 1 : 0;
    if (seed % 2 == 0) {
      EXPECT_EQ(limited.covers[0].seconds, best);
    }
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_LT(num_tolerantly, num_exactly * 9 / 10);
  EXPECT_GT(num_beyond, 100);
}

TEST(CoverSearchTest, ABeamFindsCoversAndSaysWhatItDropped) {
  int num_dropping = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(12, seed + 2'000'000);
    const double best = [&] {
      const SearchResult exact = SearchCovers(random->problem, random->costs, {.strategy = "sweep", .beam = 0});
      return exact.covers.empty() || exact.covers[0].num_unknown > 0 ? -1 : exact.covers[0].seconds;
    }();
    if (best < 0) continue;
    for (const char* strategy : {"dijkstra", "astar", "sweep", "dp"}) {
      const SearchResult found = SearchCovers(random->problem, random->costs, {.strategy = strategy, .beam = 2});
      EXPECT_EQ(found.is_exact, found.num_dropped == 0);
      num_dropping += found.is_exact ? 0 : 1;
      if (found.covers.empty() || found.covers[0].num_unknown > 0) {
        EXPECT_FALSE(found.is_exact);
        continue;
      }
      EXPECT_GE(found.covers[0].seconds, best);
      if (found.is_exact && IsExactHere(strategy, *random)) {
        EXPECT_EQ(found.covers[0].seconds, best);
      }
    }
  }
  EXPECT_GT(num_dropping, 20);
}

double Total(const Cover& cover) { return cover.seconds + cover.num_unknown * CostBook::kUnknownSeconds; }

TEST(CoverSearchTest, NoCoverIsBelowWhatASearchProves) {
  int num_cut_off = 0, num_of_use = 0;
  for (uint32_t seed = 0; seed < NumProblems() / 3; ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(4 + static_cast<int>(seed % 9), seed + 7'000'000);
    std::vector<Cover> all;
    if (!AllCovers(*random, kMostCovers, all) || all.empty()) continue;
    Sort(random->problem, all);
    const double best = Total(all[0]);
    for (const SearchStrategy& strategy : SearchStrategies()) {
      SCOPED_TRACE(strategy.name);
      const int beam = static_cast<int>(seed % 3);
      const double tolerance = seed % 2 * 0.2;
      random->costs.most_asked = seed % 5 == 0 ? 3 : std::numeric_limits<size_t>::max();
      random->costs.asked.clear();
      const SearchResult found = SearchCovers(random->problem, random->costs,
                                              {.strategy = strategy.name, .tolerance = tolerance, .beam = beam});
      if (random->costs.num_skipped > 0) {
        random->costs.num_skipped = 0;
        if (std::string(strategy.name) != "sweep") continue;  // others take what was not asked for as Invalid
      }
      EXPECT_LE(found.least_seconds, best * (1 + 1e-9));
      if (found.is_exact && IsExactHere(strategy.name, *random) && random->costs.most_asked > 3) {
        const double promised = std::string(strategy.name) == "sweep" ? best * (1 - tolerance) : best;
        EXPECT_GE(found.least_seconds, promised * (1 - 1e-6));
      }
      num_cut_off += found.num_dropped > 0 ? 1 : 0;
      num_of_use += found.num_dropped > 0 && found.least_seconds > best / 2 ? 1 : 0;
    }
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(num_cut_off, 100);
  EXPECT_GT(num_of_use, num_cut_off / 4);
}

TEST(CoverSearchTest, NoCoverWithAVariantCostsLessThanItsBound) {
  int num_compared = 0, num_exceeded = 0;
  for (uint32_t seed = 0; seed < NumProblems(); ++seed) {
    SCOPED_TRACE(seed);
    const auto random = testing_covers::MakeRandomProblem(2 + static_cast<int>(seed % 9), seed);
    std::vector<Cover> covers;
    if (!AllCovers(*random, kMostCovers, covers) || covers.empty()) continue;
    const IndexedVector<VariantIndex, double> least = LeastSecondsWith(
        random->problem, random->costs, [&](VariantIndex variant) { return random->costs.bounds[variant]; });
    const auto cheaper = [](const Cover& a, const Cover& b) { return a.seconds < b.seconds; };
    const double best = std::min_element(covers.begin(), covers.end(), cheaper)->seconds;
    for (const double bound : least) num_exceeded += bound > best ? 1 : 0;
    for (const Cover& cover : covers) {
      if (cover.num_unknown > 0) continue;  // not part of its cost
      for (const VariantIndex variant : cover.variants) {
        EXPECT_LE(least[variant], cover.seconds + 1e-6);
        ++num_compared;
      }
    }
  }
  EXPECT_GT(num_compared, 1000);
  EXPECT_GT(num_exceeded, 100) << "the bound rules nothing out";
}

}  // namespace
}  // namespace collage
