// environment_test.cc: values come from the process, and only of variables that the table explains.
#include "support/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(Environment, GivesTheValueAlsoAnEmptyOne) {
  setenv("COLLAGE_LINKER", "some-ld", 1);
  EXPECT_EQ(GetEnvironment("COLLAGE_LINKER"), "some-ld");
  setenv("COLLAGE_LINKER", "", 1);
  EXPECT_EQ(GetEnvironment("COLLAGE_LINKER"), "");
  unsetenv("COLLAGE_LINKER");
  EXPECT_EQ(GetEnvironment("COLLAGE_LINKER"), std::nullopt);
}

TEST(Environment, RefusesVariablesThatNobodyExplains) {
  ExpectError([] { GetEnvironment("COLLAGE_NO_SUCH"); }, ErrorCategory::kInternal,
              "environment variable 'COLLAGE_NO_SUCH' is not in the table");
}

TEST(Environment, RowsAreSortedAndComplete) {
  const auto rows = EnvironmentVariables();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [](const EnvironmentVariable& a, const EnvironmentVariable& b) {
    return std::string_view(a.name) < b.name;
  }));
  for (const EnvironmentVariable& row : rows) {
    EXPECT_NE(std::string_view(row.meaning), "") << row.name;
    EXPECT_NE(std::string_view(row.when_unset), "") << row.name;
  }
}

}  // namespace
}  // namespace collage
