#include "search/strategies/cover_search.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "collage/support/error.h"
#include "unit/search/indices_of.h"

namespace collage {
namespace {

using testing_search::Positions;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class TableCosts : public BasicCoverCosts {
 public:
  explicit TableCosts(std::vector<double> exact) : exact_(std::move(exact)) {}
  double LowerBound(VariantIndex variant) override { return bounds.empty() ? 0 : bounds[variant]; }
  double Exact(VariantIndex variant) override {
    asked.push_back(variant);
    return exact_[variant];
  }
  double Convert(int, Format from, Format to) override { return converts.at({from, to}); }
  double Transition(VariantIndex /*variant*/) override { return 0; }
  int ClassOf(VariantIndex variant) override { return classes.empty() ? variant.number() : classes[variant]; }

  IndexedVector<VariantIndex, double> bounds;
  IndexedVector<VariantIndex, int> classes;
  std::vector<VariantIndex> asked;
  std::map<std::pair<Format, Format>, double> converts;

 private:
  IndexedVector<VariantIndex, double> exact_;
};

CoverProblem Chain(int length, const std::vector<std::vector<int>>& covers) {
  CoverProblem problem;
  problem.num_positions = length;
  for (const std::vector<int>& of : covers) problem.variants.push_back({.covers = Positions(of)});
  for (int node = 0; node < length; ++node)
    problem.node_inputs.push_back(node == 0 ? std::vector<int>{} : std::vector{node - 1});
  return problem;
}

TEST(CoverSearchTest, AnUnknownStrategyIsRefusedWithTheKnownOnes) {
  TableCosts costs({1});
  try {
    SearchCovers(Chain(1, {{0}}), costs, {.strategy = "guess"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "there is no search 'guess'");
    EXPECT_EQ(error.hint(), "there are: dijkstra, astar, sweep, dp, evolutionary, exhaustive");
  }
}

TEST(CoverSearchTest, AnEmptyProblemHasTheEmptyCover) {
  for (const SearchStrategy& strategy : SearchStrategies()) {
    SCOPED_TRACE(strategy.name);
    TableCosts costs({});
    const SearchResult found = SearchCovers(Chain(0, {}), costs, {.strategy = strategy.name});
    ASSERT_EQ(found.covers.size(), 1u);
    EXPECT_TRUE(found.covers[0].variants.empty());
    EXPECT_EQ(found.covers[0].seconds, 0);
  }
}

TEST(CoverSearchTest, UnknownCostsAreUsedOnlyWhereNothingElseWillDo) {
  const CoverProblem problem = Chain(2, {{0}, {1}, {0, 1}, {1}});
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
    SCOPED_TRACE(strategy);
    TableCosts costs({1, std::nan(""), 500, kInfinity});
    const SearchResult found = SearchCovers(problem, costs, {.strategy = strategy});
    EXPECT_EQ(NumbersOf(found.covers.at(0).variants), std::vector<int>{2});
    EXPECT_EQ(found.covers[0].num_unknown, 0);
    TableCosts without({1, std::nan(""), kInfinity, kInfinity});
    const SearchResult needed = SearchCovers(problem, without, {.strategy = strategy});
    EXPECT_EQ(NumbersOf(needed.covers.at(0).variants), (std::vector<int>{0, 1}));
    EXPECT_EQ(needed.covers[0].num_unknown, 1);
    EXPECT_EQ(needed.covers[0].seconds, 1);
  }
}

TEST(CoverSearchTest, AnySlackIsInfinite) {
  const CoverProblem problem = Chain(2, {{0}, {1}, {0, 1}});
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
    SCOPED_TRACE(strategy);
    for (const double least : {0.0, 1.0}) {
      TableCosts costs({0, least, 7});
      const SearchResult found =
          SearchCovers(problem, costs, {.strategy = strategy, .num_covers = 5, .slack = kInfinity});
      ASSERT_EQ(found.covers.size(), 2u);
      EXPECT_EQ(found.covers[0].seconds, least);
      EXPECT_EQ(found.covers[1].seconds, 7);
    }
  }
}

TEST(CoverSearchTest, CutsMakePartsIndependent) {
  // Ten pairs that nothing reaches across; in each, two dear ways. Dijkstra over the whole would look at a dear way of
  // the first pair again and again before the end; after a cut it does not.
  std::vector<std::vector<int>> covers;
  std::vector<double> exact;
  for (int pair = 0; pair < 10; ++pair) {
    for (const auto& of : std::vector<std::vector<int>>{{2 * pair}, {2 * pair + 1}, {2 * pair, 2 * pair + 1}})
      covers.push_back(of);
    for (double cost : {1.0, 1.0, 3.0}) exact.push_back(cost);
  }
  const CoverProblem problem = Chain(20, covers);
  for (const char* strategy : {"dijkstra", "astar", "sweep"}) {
    SCOPED_TRACE(strategy);
    TableCosts costs(exact);
    costs.bounds = IndexedVector<VariantIndex, double>(exact);
    for (double& bound : costs.bounds) bound *= 0.9;
    const SearchResult found = SearchCovers(problem, costs, {.strategy = strategy});
    EXPECT_EQ(found.covers.at(0).seconds, 20);
    EXPECT_EQ(found.num_exact, 20) << "the pairs as one need not be asked for";
  }
}

TEST(CoverSearchTest, VariantsOfOneClassAreAskedForOnce) {
  std::vector<std::vector<int>> covers;
  for (int node = 0; node < 12; ++node) covers.push_back({node});
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
    SCOPED_TRACE(strategy);
    TableCosts costs(std::vector<double>(12, 1));
    for (int node = 0; node < 12; ++node) costs.classes.push_back(node % 3);
    const SearchResult found = SearchCovers(Chain(12, covers), costs, {.strategy = strategy});
    EXPECT_EQ(found.covers.at(0).seconds, 12);
    EXPECT_EQ(costs.asked.size(), 3u);
    EXPECT_EQ(found.num_exact, 3);
  }
}

TEST(CoverSearchTest, FormatsCountEachConversionOnce) {
  // 0 is made in one of three formats; 1 and 2 both want format 2.
  CoverProblem problem = Chain(3, {{0}, {0}, {0}, {1}, {2}});
  problem.values[0] = {Position(0), Positions({1, 2})};
  for (Format format : {0, 1, 2}) problem.variants[VariantIndex(format)].makes = {{0, format}};
  problem.variants[VariantIndex(3)].wants = problem.variants[VariantIndex(4)].wants = {{0, 2}};
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
    SCOPED_TRACE(strategy);
    TableCosts costs({1, 2, 9, 0, 0});
    costs.converts = {{{0, 2}, 5}, {{1, 2}, 3}, {{2, 0}, 1}, {{2, 1}, 1}, {{0, 1}, 1}, {{1, 0}, 1}};
    const SearchResult found = SearchCovers(problem, costs, {.strategy = strategy, .num_covers = 3, .slack = 1});
    ASSERT_EQ(found.covers.size(), 3u);
    EXPECT_EQ(found.covers[0].seconds, 5);
    EXPECT_EQ(NumbersOf(found.covers[0].variants), (std::vector<int>{1, 3, 4}));
    EXPECT_EQ(found.covers[1].seconds, 6);
    EXPECT_EQ(found.covers[2].seconds, 9);
  }
}

TEST(CoverSearchTest, ThreePartitionsInACircleAreNoCover) {
  // a0 → b1, b0 → c1, c0 → a1: any two of the three pairs can be run, all three cannot.
  CoverProblem problem;
  problem.num_positions = 6;  // a0 b0 c0 a1 b1 c1
  problem.node_inputs = {{}, {}, {}, {2}, {0}, {1}};
  for (const auto& of : std::vector<std::vector<int>>{{0, 3}, {1, 4}, {2, 5}, {0}, {1}, {2}, {3}, {4}, {5}}) {
    problem.variants.push_back({.covers = Positions(of)});
    if (of.size() > 1) problem.variants.back().members = of;
  }
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp", "exhaustive"}) {
    SCOPED_TRACE(strategy);
    TableCosts costs({1, 1, 1, 1, 1, 1, 1, 1, 1});
    const SearchResult found = SearchCovers(problem, costs, {.strategy = strategy});
    EXPECT_EQ(found.covers.at(0).seconds, 4) << "two pairs and two single ones";
  }
}

TEST(CoverSearchTest, AChainOfOneHugeCandidateAndManySmallOnesIsLinear) {
  constexpr int kLength = 30'000;
  std::vector<std::vector<int>> covers;
  std::vector<int> all;
  for (int node = 0; node < kLength; ++node) {
    covers.push_back({node});
    if (node + 1 < kLength) covers.push_back({node, node + 1});
    if (node % 3 != 1) all.push_back(node);  // with holes
  }
  covers.push_back(all);
  std::vector<double> exact;
  for (const auto& of : covers) exact.push_back(of.size() == 2 ? 1.5 : of.size() == 1 ? 1 : 1);
  for (const char* strategy : {"dijkstra", "astar", "sweep", "dp"}) {
    SCOPED_TRACE(strategy);
    TableCosts costs(exact);
    costs.bounds = IndexedVector<VariantIndex, double>(exact);
    const SearchResult found = SearchCovers(Chain(kLength, covers), costs, {.strategy = strategy});
    EXPECT_EQ(found.covers.at(0).seconds, 1 + kLength / 3);
    EXPECT_TRUE(found.is_exact);
    EXPECT_LT(found.num_states, 5 * kLength);
  }
}

TEST(CoverSearchTest, EvolutionHandsOverWhatIsFasterEndToEnd) {
  // By costs each node is best with toolchain 0; end to end, the more toolchain 1 has the better.
  CoverProblem problem = Chain(6, {{0}, {1}, {2}, {3}, {4}, {5}, {0}, {1}, {2}, {3}, {4}, {5}, {0, 1, 2}, {3, 4, 5}});
  for (VariantIndex v : problem.variants.indices()) problem.variants[v].toolchain = v.number() < 6 ? 0 : 1;
  std::vector<double> exact(14, 2);
  for (size_t v = 0; v < 6; ++v) exact[v] = 1;
  exact[12] = exact[13] = 10;
  TableCosts costs(exact);
  SearchOptions options{.strategy = "evolutionary"};
  options.evolution.population = 12;
  options.evolution.max_evaluations = 200;
  int num_asked = 0;
  options.fitness = [&](const Cover& cover) {
    ++num_asked;
    return static_cast<double>(cover.variants.size());
  };
  const SearchResult found = SearchCovers(problem, costs, options);
  EXPECT_EQ(NumbersOf(found.covers.at(0).variants), (std::vector<int>{12, 13}));
  EXPECT_EQ(found.covers[0].seconds, 20);
  EXPECT_FALSE(found.is_exact);
  EXPECT_LE(num_asked, 200);
  // Without a measurement it keeps to costs.
  options.fitness = nullptr;
  EXPECT_EQ(SearchCovers(problem, costs, options).covers.at(0).seconds, 6);
}

}  // namespace
}  // namespace collage
