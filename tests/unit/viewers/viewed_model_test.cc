#include "viewers/viewed_model.h"

#include <gtest/gtest.h>

#include "unit/support/throws.h"
#include "unit/viewers/two_partitions.h"

namespace collage {
namespace {

TEST_F(ViewersTest, TimesOfAProfileReplaceEstimates) {
  EXPECT_FALSE(viewed_->is_measured());
  EXPECT_NEAR(viewed_->AllSeconds(), 5e-6, 1e-12);
  const std::string row = R"({"plan": "", "plan_step": 1, "operators": "exp+add", "p10_seconds": 2e-6,
                              "p50_seconds": 3e-6, "p90_seconds": 4e-6, "calls": 1})";
  viewed_->TakeTimes(R"({"steps": [)" + row + "]}", "p.json");
  EXPECT_TRUE(viewed_->is_measured());
  EXPECT_NEAR(viewed_->AllSeconds(), 4e-6 + 3e-6, 1e-12);
  ExpectError([&] { viewed_->TakeTimes("{}", "p.json"); }, ErrorCategory::kInput, "p.json: error: not a profile");
  ExpectError([&] { viewed_->TakeTimes(R"({"steps": []})", "p.json"); }, ErrorCategory::kInput,
              "the profile has no step of 'two.clg'");
}

}  // namespace
}  // namespace collage
