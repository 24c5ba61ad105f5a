#include "cost/estimator/tie_break.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

TuningRecord Took(double p50) {
  TuningRecord record;
  record.ok = true;
  record.minimum = p50 * 0.9;
  record.p50 = p50;
  record.p90 = p50 * 1.1;
  record.num_samples = 9;
  return record;
}

TEST(TieBreakTest, WhatNoiseCannotTellApartCostsTheSame) {
  // The second is dearer twice, cheaper once.
  const std::vector<TuningRecord> settled =
      BreakTiesOfRounds({{Took(100), Took(103)}, {Took(104), Took(101)}, {Took(102), Took(105)}}, 0.02);
  EXPECT_EQ(settled[0].p50, settled[1].p50);
  EXPECT_EQ(settled[0].p50, 102);
  EXPECT_LE(settled[1].minimum, settled[1].p50);
  EXPECT_GE(settled[1].p90, settled[1].p50);
}

TEST(TieBreakTest, WhatIsDearerEveryTimeStaysSo) {
  // The machine slowed down meanwhile: rounds are compared, not sums.
  const std::vector<TuningRecord> settled =
      BreakTiesOfRounds({{Took(100), Took(110)}, {Took(150), Took(165)}, {Took(200), Took(220)}}, 0.02);
  EXPECT_EQ(settled[0].p50, 150);
  EXPECT_NEAR(settled[1].p50, 165, 1e-9);
}

TEST(TieBreakTest, AlwaysDearerByLessThanTheNoiseIsNotDearer) {
  const std::vector<TuningRecord> settled =
      BreakTiesOfRounds({{Took(100), Took(101)}, {Took(100), Took(101)}, {Took(100), Took(101)}}, 0.02);
  EXPECT_EQ(settled[0].p50, settled[1].p50);
}

TEST(TieBreakTest, ComparesTheQuantileAskedFor) {
  TuningRecord varied = Took(99);
  varied.p90 = 200;
  const std::vector<TuningRecord> dearer = BreakTiesOfRounds({{Took(100), varied}}, 0.02, 0.9);
  EXPECT_NEAR(dearer[0].Quantile(0.9), 110, 1e-9);
  EXPECT_NEAR(dearer[1].Quantile(0.9), 200, 1e-9);
  varied.p90 = 111;
  for (const double fraction : {0.55, 0.9}) {
    const std::vector<TuningRecord> alike =
        BreakTiesOfRounds({{Took(100), varied}, {Took(101), varied}}, 0.02, fraction);
    EXPECT_EQ(alike[0].Quantile(fraction), alike[1].Quantile(fraction));
  }
}

TEST(TieBreakTest, OfThreeTheBestIsTheMeasure) {
  const std::vector<TuningRecord> settled = BreakTiesOfRounds({{Took(120), Took(100), Took(101)}}, 0.02);
  EXPECT_NEAR(settled[0].p50, 120, 1e-9);
  EXPECT_EQ(settled[1].p50, 100);
  EXPECT_EQ(settled[2].p50, 100);
}

}  // namespace
}  // namespace collage
