#include "driver/report/report_numbers.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace collage {
namespace {

TEST(AddRegionTest, SumsByTheRows) {
  CompileReport program;
  program.total_seconds = 3;
  CompileReport region;
  region.num_operators = 5;
  region.num_measured = 2;
  region.play_off_parts.timing = 0.5;
  region.total_seconds = 7;
  region.tuning.gain = 0.25;
  region.failures["timed out"] = {1, "first"};
  AddRegion(region, 3, program);
  region.tuning.gain = 0.125;
  region.budget_spent = true;
  region.failures["timed out"] = {1, "second"};
  AddRegion(region, 1, program);
  EXPECT_EQ(program.num_operators, 20);
  EXPECT_EQ(program.num_measured, 4);
  EXPECT_EQ(program.play_off_parts.timing, 1);
  EXPECT_EQ(program.total_seconds, 3);  // the program's own
  EXPECT_EQ(program.tuning.gain, 0.25);
  EXPECT_TRUE(program.budget_spent);
  EXPECT_EQ(program.failures["timed out"], (std::pair<int64_t, std::string>(2, "first")));
}

TEST(ReportNumbersTest, KeysAreDistinct) {
  std::set<std::string> keys;
  for (const auto& number : SecondsNumbers()) EXPECT_TRUE(keys.insert(number.key).second) << number.key;
  for (const auto& number : PlayOffNumbers()) EXPECT_TRUE(keys.insert(number.key).second) << number.key;
}

}  // namespace
}  // namespace collage
