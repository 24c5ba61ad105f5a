#include "cost/measure/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace collage {
namespace {

/// Probability that exactly `k` of `n` are below the `p` quantile, by multiplying up.
double Binomial(size_t n, size_t k, double p) {
  double result = 1;
  for (size_t i = 1; i <= k; ++i) result *= p * static_cast<double>(n - k + i) / static_cast<double>(i);
  return result * std::pow(1 - p, static_cast<double>(n - k));
}

TEST(IntervalRanksTest, AgreesWithTables) {
  // Ranks for the median that every table of order statistics has (Conover, table A3).
  using Ranks = std::pair<size_t, size_t>;
  EXPECT_EQ(IntervalRanks(5, 0.5), std::nullopt);  // even the whole range holds it with 93.75 % only
  EXPECT_EQ(IntervalRanks(6, 0.5), (Ranks{1, 6}));
  EXPECT_EQ(IntervalRanks(10, 0.5), (Ranks{2, 9}));
  EXPECT_EQ(IntervalRanks(20, 0.5), (Ranks{6, 15}));
  EXPECT_EQ(IntervalRanks(30, 0.5), (Ranks{10, 21}));
  EXPECT_EQ(IntervalRanks(100, 0.5), (Ranks{40, 61}));
  EXPECT_EQ(IntervalRanks(0, 0.5), std::nullopt);
  EXPECT_EQ(IntervalRanks(20, 0.9), std::nullopt);  // too few for a high one
}

TEST(IntervalRanksTest, AreTheNarrowestThatLeaveTwoAndAHalfPercent) {
  for (const size_t n : {7, 13, 29, 50, 80}) {
    for (const double p : {0.1, 0.25, 0.5, 0.75, 0.9}) {
      size_t low = 0;
      size_t high = n + 1;
      double below = 0;
      double above = 0;
      for (size_t rank = 1; rank <= n && (below += Binomial(n, rank - 1, p)) <= 0.025; ++rank) low = rank;
      for (size_t rank = n; rank >= 1 && (above += Binomial(n, rank, p)) <= 0.025; --rank) high = rank;
      const auto ranks = IntervalRanks(n, p);
      ASSERT_EQ(ranks.has_value(), low >= 1 && high <= n) << n << " samples, quantile " << p;
      if (ranks.has_value()) {
        EXPECT_EQ(*ranks, (std::pair{low, high})) << n << " samples, quantile " << p;
      }
    }
  }
}

TEST(SamplesTest, IntervalsHoldTheQuantileAsOftenAsTheySay) {
  std::mt19937 random(7);
  std::exponential_distribution<double> draw(1);
  for (const double fraction : {0.25, 0.5, 0.9}) {
    const double truth = -std::log(1 - fraction);
    constexpr int kTrials = 2000;
    int held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      Samples samples;
      for (int i = 0; i < 60; ++i) samples.Add(draw(random));
      const auto interval = samples.QuantileInterval(fraction);
      ASSERT_TRUE(interval.has_value());
      held += interval->low <= truth && truth <= interval->high ? 1 : 0;
    }
    EXPECT_GE(held, kTrials * 94 / 100) << fraction;
    EXPECT_LE(held, kTrials * 99 / 100) << fraction;
  }
}

/// A run whose length a function of its number gives, on a clock that only such runs move.
class FakeRuns {
 public:
  explicit FakeRuns(std::function<double(int run)> seconds) : seconds_(std::move(seconds)) {}

  Samples Time(const TimingOptions& options, std::function<TimingHooks::Check(int)> check = nullptr) {
    return TimeRuns([this] { clock_ += seconds_(num_runs_++); }, options,
                    {.check = std::move(check), .now = [this] { return clock_; }});
  }
  double clock() const { return clock_; }
  int num_runs() const { return num_runs_; }

 private:
  std::function<double(int run)> seconds_;
  double clock_ = 0;
  int num_runs_ = 0;
};

TEST(TimeRunsTest, StopsWhenTheIntervalIsNarrow) {
  FakeRuns steady([](int) { return 100e-6; });
  const TimingOptions options{.min_seconds = 0.001};
  const Samples samples = steady.Time(options);
  EXPECT_LE(samples.size(), 15u);
  EXPECT_NEAR(samples.p50(), 100e-6, 1e-12);
}

TEST(TimeRunsTest, NoiseIsGivenTheBudgetAndNoMore) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> noise(0, 0.5);
  FakeRuns noisy([&](int) { return 100e-6 * noise(random); });
  TimingOptions options{.warmup_seconds = 0, .min_seconds = 0.001, .max_half_width = 0.001, .budget_seconds = 0.05};
  const Samples all = noisy.Time(options);
  EXPECT_GE(noisy.clock(), 0.05);
  EXPECT_LE(noisy.clock(), 0.055);
  EXPECT_GT(all.QuantileInterval(0.5)->half_width(), 0.001 * all.p50());

  options.max_half_width = 0.1;  // met after a part of the budget
  options.budget_seconds = 10;
  FakeRuns again([&](int) { return 100e-6 * noise(random); });
  const Samples some = again.Time(options);
  EXPECT_LE(some.QuantileInterval(0.5)->half_width(), 0.1 * some.p50());
  EXPECT_LT(again.clock(), 0.1);
}

TEST(TimeRunsTest, AHigherPercentileTakesMoreSamples) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(1, 1.5);
  TimingOptions options{.min_seconds = 0, .budget_seconds = 10};
  FakeRuns one([&](int) { return 100e-6 * noise(random); });
  options.percentile = 0.9;
  const Samples high = one.Time(options);
  EXPECT_GE(high.size(), 36u);  // fewer have no interval for it
  ASSERT_TRUE(high.QuantileInterval(0.9).has_value());
  EXPECT_LE(high.QuantileInterval(0.9)->half_width(), options.max_half_width * high.Quantile(0.9));
}

TEST(TimeRunsTest, ABatchMayBeTimedByAnotherClock) {
  double clock = 0;
  int num_runs = 0;
  std::vector<int> batches;
  const TimingHooks hooks{.read_inputs = [] { FAIL() << "caches are the other clock's business"; },
                          .now = [&] { return clock; },
                          .time_batch =
                              [&](int runs) {
                                batches.push_back(runs);
                                clock += 50e-6;  // by this clock, launches are most of it
                                return runs * 0x1p-19;
                              }};
  for (const CacheLevel operands : {CacheLevel::kNear, CacheLevel::kMemory}) {
    batches.clear();
    const TimingOptions options{.min_batch_seconds = 100e-6, .operands = operands};
    const Samples samples = TimeRuns([&] { ++num_runs; }, options, hooks);
    EXPECT_EQ(samples.p50(), 0x1p-19);
    EXPECT_EQ(batches.front(), 1);  // to see how long one takes
    EXPECT_EQ(batches.back(), operands == CacheLevel::kNear ? 53 : 1);
    EXPECT_EQ(num_runs, 0);
  }
}

TEST(TimeRunsTest, LongRunsAreBoundedAndShortOnesBatched) {
  FakeRuns slow([](int) { return 0.3; });
  EXPECT_EQ(slow.Time({}).size(), 4u);          // more than max_seconds at the fourth
  FakeRuns quick([](int) { return 0x1p-20; });  // a microsecond that sums up exactly
  std::vector<int> batches;
  const Samples samples = quick.Time({}, [&](int runs) {
    batches.push_back(runs);
    return TimingHooks::Check::kSame;
  });
  EXPECT_EQ(batches.size(), samples.size());
  EXPECT_EQ(batches[0], 21);
  EXPECT_EQ(samples.p50(), 0x1p-20);
}

TEST(TimeRunsTest, ACheckMayStopItOrAskForARun) {
  FakeRuns runs([](int) { return 1e-3; });
  int checks = 0;
  EXPECT_EQ(
      runs.Time({}, [&](int) { return ++checks == 3 ? TimingHooks::Check::kStop : TimingHooks::Check::kSame; }).size(),
      3u);
  FakeRuns same([](int) { return 1e-3; });
  FakeRuns disturbed([](int) { return 1e-3; });
  const Samples first = same.Time({}, [](int) { return TimingHooks::Check::kSame; });
  const Samples second = disturbed.Time({}, [](int) { return TimingHooks::Check::kDisturbed; });
  EXPECT_EQ(first.size(), second.size());
  EXPECT_EQ(disturbed.num_runs(), same.num_runs() + static_cast<int>(second.size()));
}

}  // namespace
}  // namespace collage
