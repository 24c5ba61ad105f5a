// memory_planner_test.cc: no overlap, little waste.
#include "runtime/plan/memory_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace collage {
namespace {

/// The most that lives at one step: no plan can need less.
int64_t LowerBound(const std::vector<LiveRange>& ranges) {
  int last = 0;
  for (const LiveRange& range : ranges) last = std::max(last, range.last_use);
  std::vector<int64_t> change(static_cast<size_t>(last) + 2);
  for (const LiveRange& range : ranges) {
    change[static_cast<size_t>(range.first_use)] += range.bytes;
    change[static_cast<size_t>(range.last_use) + 1] -= range.bytes;
  }
  int64_t live = 0;
  int64_t most = 0;
  for (int64_t delta : change) most = std::max(most, live += delta);
  return most;
}

void CheckPlan(const std::vector<LiveRange>& ranges, const ArenaPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_GE(plan.offsets[i], 0);
    ASSERT_EQ(plan.offsets[i] % 64, 0);
    ASSERT_LE(plan.offsets[i] + ranges[i].bytes, static_cast<int64_t>(plan.total_bytes));
    for (size_t j = 0; j < i; ++j) {
      const bool meet_in_time = ranges[i].first_use <= ranges[j].last_use && ranges[j].first_use <= ranges[i].last_use;
      const bool meet_in_space =
          plan.offsets[i] < plan.offsets[j] + ranges[j].bytes && plan.offsets[j] < plan.offsets[i] + ranges[i].bytes;
      ASSERT_FALSE(meet_in_time && meet_in_space) << "ranges " << j << " and " << i;
    }
  }
}

TEST(MemoryPlanner, NothingNeedsNothing) {
  EXPECT_EQ(PlanArena({}).total_bytes, 0u);
  EXPECT_EQ(PlanArena({{0, 0, 5}}).total_bytes, 0u);
}

TEST(MemoryPlanner, ChainNeedsTheTwoLargestNeighbours) {
  const std::vector<LiveRange> ranges{{640, 0, 1}, {1280, 1, 2}, {320, 2, 3}, {1920, 3, 4}, {64, 4, 5}};
  const ArenaPlan plan = PlanArena(ranges);
  CheckPlan(ranges, plan);
  EXPECT_EQ(plan.total_bytes, 320u + 1920u);
}

TEST(MemoryPlanner, RandomRangesNeverOverlap) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int steps = 1 + static_cast<int>(random() % 40);
    std::vector<LiveRange> ranges;
    for (unsigned i = 0, count = random() % 60; i < count; ++i) {
      const int first = static_cast<int>(random() % static_cast<unsigned>(steps));
      const int last = first + static_cast<int>(random() % static_cast<unsigned>(steps - first));
      ranges.push_back({64 * static_cast<int64_t>(random() % 50), first, last});
    }
    const ArenaPlan plan = PlanArena(ranges);
    CheckPlan(ranges, plan);
    ASSERT_GE(static_cast<int64_t>(plan.total_bytes), LowerBound(ranges));
  }
}

/// Mean of used over needed, minus 1, for chains of 150 steps with a shortcut around every three and sizes from
/// `bytes`.
template <typename Bytes>
double WasteOfChains(Bytes&& bytes) {
  double waste = 0;
  constexpr unsigned kChains = 50;
  for (unsigned seed = 0; seed < kChains; ++seed) {
    std::mt19937 random(seed);
    std::vector<LiveRange> ranges;
    for (int step = 0; step < 150; ++step)
      ranges.push_back({bytes(random, step), step, step % 3 == 0 ? step + 3 : step + 1});
    const ArenaPlan plan = PlanArena(ranges);
    CheckPlan(ranges, plan);
    waste += static_cast<double>(plan.total_bytes) / static_cast<double>(LowerBound(ranges)) - 1;
  }
  return waste / kChains;
}

TEST(MemoryPlanner, ModelsStayNearTheLowerBound) {
  // As in convolutional models: sizes are powers of two times one, or shrink stage by stage.
  EXPECT_LT(WasteOfChains([](std::mt19937& random, int) { return int64_t{640} << (random() % 5); }), 0.02);
  EXPECT_LT(WasteOfChains([](std::mt19937& random, int step) {
              return int64_t{12800} * (1 + (150 - step) / 30) * (1 + static_cast<int64_t>(random() % 2));
            }),
            0.05);
}

TEST(MemoryPlanner, SizesWithoutPatternCostAFewPercentMore) {
  EXPECT_LT(WasteOfChains([](std::mt19937& random, int) { return 64 * (100 + static_cast<int64_t>(random() % 900)); }),
            0.12);
}

TEST(MemoryPlanner, HundredThousandStepsArePlanned) {
  std::vector<LiveRange> ranges;
  for (int step = 0; step < 100'000; ++step) ranges.push_back({64 * (1 + step % 7), step, step + 1});
  EXPECT_EQ(static_cast<int64_t>(PlanArena(ranges).total_bytes), LowerBound(ranges));
}

}  // namespace
}  // namespace collage
