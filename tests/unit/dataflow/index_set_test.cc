#include "dataflow/index_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace collage {
namespace {

TEST(IndexSetTest, TextAbbreviatesRuns) {
  EXPECT_EQ(IndexSet(10, {1, 3, 4, 5, 6, 8}).ToString(), "{1,3..6,8}");
  EXPECT_EQ(IndexSet(10, {1, 2}).ToString(), "{1,2}");
  EXPECT_EQ(IndexSet(10).ToString(), "{}");
}

TEST(IndexSetTest, OperationsAcrossWords) {
  const IndexSet a(200, {0, 63, 64, 130});
  const IndexSet b(200, {63, 130, 199});
  EXPECT_EQ((a | b).Members(), (std::vector<int>{0, 63, 64, 130, 199}));
  EXPECT_EQ((a & b).Members(), (std::vector<int>{63, 130}));
  EXPECT_EQ((a - b).Members(), (std::vector<int>{0, 64}));
  EXPECT_FALSE(a.AreDisjoint(b));
  EXPECT_TRUE((a & b).IsSubset(a));
  EXPECT_EQ(b.FirstInside(), 63u);
  EXPECT_EQ(IndexSet(200).FirstInside(), 200u);
  EXPECT_EQ(a.PopCount(), 4u);
}

TEST(IndexSetTest, FirstLastNextAndOutside) {
  const IndexSet set(200, {70, 71, 150});
  EXPECT_EQ(set.FirstInside(), 70u);
  EXPECT_EQ(set.LastInside(), 150u);
  EXPECT_EQ(set.NextInside(72), 150u);
  EXPECT_EQ(set.NextInside(71), 71u);
  EXPECT_EQ(set.NextInside(151), 200u);
  EXPECT_EQ(set.FirstOutside(), 0u);
  IndexSet full(130);
  for (int i = 0; i < 130; ++i) full.Add(i);
  EXPECT_EQ(full.FirstOutside(), 130u);
  full.Remove(64);
  EXPECT_EQ(full.FirstOutside(), 64u);
  EXPECT_EQ(IndexSet(5).LastInside(), 5u);
  EXPECT_EQ(IndexSet(5).FirstOutside(), 0u);
}

TEST(IndexSetTest, WhoHasTheFirstDifferenceIsLess) {
  EXPECT_LT(IndexSet(100, {1, 5}), IndexSet(100, {1, 6}));
  EXPECT_LT(IndexSet(100, {1, 5}), IndexSet(100, {1}));
  EXPECT_LT(IndexSet(100, {70}), IndexSet(100, {80}));
  EXPECT_LT(IndexSet(100, {3, 90}), IndexSet(100, {70}));
  EXPECT_EQ(IndexSet(100, {3}) <=> IndexSet(100, {3}), std::strong_ordering::equal);
}

TEST(IndexSetTest, AgreesWithStdSetOnRandomSets) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const int size = 1 + static_cast<int>(random() % 300);
    const auto draw = [&] {
      std::set<int> members;
      const int low = static_cast<int>(random() % size);
      for (unsigned i = random() % 12; i > 0; --i) members.insert(low + static_cast<int>(random() % (size - low)));
      return members;
    };
    const auto list = [](const std::set<int>& s) { return std::vector<int>(s.begin(), s.end()); };
    const std::set<int> x = draw(), y = draw();
    IndexSet a(size, list(x));
    const IndexSet b(size, list(y));
    std::vector<int> both, common, rest;
    std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(common));
    std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(rest));
    EXPECT_EQ((a | b).Members(), both);
    EXPECT_EQ((a & b).Members(), common);
    EXPECT_EQ((a - b).Members(), rest);
    EXPECT_EQ(a.AreDisjoint(b), common.empty());
    EXPECT_EQ(a.IsSubset(b), rest.empty());
    EXPECT_EQ(a == b, x == y);
    EXPECT_EQ(a.PopCount(), x.size());
    EXPECT_EQ((a | b).Hash(), IndexSet(size, both).Hash());
    for (int member : common) a.Remove(member);
    EXPECT_EQ(a, IndexSet(size, rest)) << "removing leaves no empty words behind";
  }
}

}  // namespace
}  // namespace collage
