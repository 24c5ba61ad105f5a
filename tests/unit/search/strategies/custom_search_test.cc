// custom_search_test.cc: what a search of one's own is told, and what is made of its answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "collage/support/error.h"
#include "search/strategies/cover_search.h"
#include "unit/search/indices_of.h"

namespace collage {
namespace {

using testing_search::Positions;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Costs : public BasicCoverCosts {
 public:
  explicit Costs(std::vector<double> exact) : exact_(std::move(exact)) {}
  double LowerBound(VariantIndex /*variant*/) override { return 0.5; }
  double Exact(VariantIndex variant) override {
    asked.push_back(variant);
    return exact_[variant];
  }
  double Convert(int, Format, Format) override { return 0.25; }
  double Transition(VariantIndex /*variant*/) override { return 10; }
  std::vector<VariantIndex> asked;

 private:
  IndexedVector<VariantIndex, double> exact_;
};

/// Two operators; each alone, and both: 0 makes its value in format 1, which 1 wants in format 0.
CoverProblem Problem() {
  CoverProblem problem;
  problem.num_positions = 2;
  problem.variants = {{.covers = Positions({0}), .makes = {{7, 1}}},
                      {.covers = Positions({1}), .wants = {{7, 0}}},
                      {.covers = Positions({0, 1})}};
  problem.values[7] = {.maker = Position(0), .readers = Positions({1})};
  return problem;
}

using Covers = std::vector<std::vector<int>>;

SearchResult Searched(Costs& costs, const CustomSearch& search, int num_covers = 2) {
  SearchOptions options;
  options.num_covers = num_covers;
  options.custom = search;
  options.toolchain_name = [](VariantIndex variant) { return "t" + std::to_string(variant.number()); };
  return SearchCovers(Problem(), costs, options);
}

std::string Refusal(Costs& costs, const Covers& covers) {
  try {
    Searched(costs, [&](CoverTask&) { return covers; });
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(CustomSearchTest, CoversComeBackInOrderWithTheirWholeCost) {
  Costs costs({1, 2, 5});
  const SearchResult found = Searched(costs, [](CoverTask&) { return Covers{{1, 0}, {2}}; });
  ASSERT_EQ(found.covers.size(), 2u);
  EXPECT_THAT(NumbersOf(found.covers[0].variants), testing::ElementsAre(0, 1));
  EXPECT_EQ(found.covers[0].seconds, 1 + 2 + 2 * 10 + 0.25);
  EXPECT_EQ(found.covers[1].seconds, 15);
  EXPECT_FALSE(found.is_exact);
  EXPECT_EQ(found.num_exact, 3);
  // 15 without formats, which is the best cover here.
  EXPECT_NEAR(found.least_seconds, 15, 1e-6);
}

TEST(CustomSearchTest, CostsAreFoundOutWhenTheyAreAskedFor) {
  Costs costs({1, 2, 5});
  Searched(costs, [&](CoverTask& task) {
    EXPECT_EQ(task.num_positions(), 2);
    EXPECT_EQ(task.num_candidates(), 3);
    EXPECT_THAT(task.positions(2), testing::ElementsAre(0, 1));
    EXPECT_EQ(task.toolchain(1), "t1");
    EXPECT_EQ(task.lower_bound(2), 0.5);
    EXPECT_TRUE(costs.asked.empty());
    EXPECT_EQ(task.cost(2), 5);
    EXPECT_EQ(task.cost(2), 5);
    EXPECT_EQ(task.seconds({1}), kInfinity);
    EXPECT_EQ(task.seconds({1, 0}), 23.25);
    return Covers{{2}};
  });
  EXPECT_THAT(NumbersOf(costs.asked), testing::ElementsAre(2, 0, 1));
}

TEST(CustomSearchTest, WhatIsNoCoverIsRefused) {
  Costs costs({1, kInfinity, 5});
  EXPECT_EQ(Refusal(costs, {{}}), "the search gave what is no cover: position 0 is not covered");
  EXPECT_EQ(Refusal(costs, {{0, 2}}), "the search gave what is no cover: position 0 is covered twice");
  EXPECT_EQ(Refusal(costs, {{0, 1}}), "the search gave what is no cover: candidate 1 cannot be run");
  EXPECT_EQ(Refusal(costs, {{3}}), "there is no candidate 3: there are 3");
}

TEST(CustomSearchTest, UnknownCostsAreCountedApart) {
  Costs costs({1, std::numeric_limits<double>::quiet_NaN(), 5});
  const SearchResult found = Searched(costs, [](CoverTask& task) {
    EXPECT_TRUE(std::isnan(task.cost(1)));
    return Covers{{0, 1}};
  });
  EXPECT_EQ(found.covers.at(0).num_unknown, 1);
  EXPECT_EQ(found.covers[0].seconds, 21.25);
}

TEST(CustomSearchTest, NoMoreCoversThanWantedAndEachOnce) {
  Costs costs({1, 2, 5});
  EXPECT_EQ(Searched(costs, [](CoverTask&) { return Covers{{0, 1}, {1, 0}, {2}}; }).covers.size(), 2u);
  EXPECT_EQ(Searched(
                costs,
                [](CoverTask&) {
                  return Covers{{2}, {0, 1}};
                },
                1)
                .covers.size(),
            1u);
}

TEST(CustomSearchTest, OperatorsThatNothingCoversAreSaidWhenThereIsNoCover) {
  Costs costs({kInfinity, 2, kInfinity});
  const SearchResult found = Searched(costs, [](CoverTask& task) {
    EXPECT_EQ(task.cost(0), kInfinity);
    EXPECT_EQ(task.cost(2), kInfinity);
    return Covers{};
  });
  EXPECT_THAT(NumbersOf(found.stuck_at), testing::ElementsAre(0));
}

}  // namespace
}  // namespace collage
