#include "support/programs/find_python.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace collage {
namespace {

TEST(FindPythonTest, TheChosenOneCountsElseThatOfTheBuildElseTheSystems) {
  ASSERT_EQ(setenv("COLLAGE_PYTHON", "/opt/python", 1), 0);
  EXPECT_EQ(FindPython(), "/opt/python");
  ASSERT_EQ(unsetenv("COLLAGE_PYTHON"), 0);
  const std::string found = FindPython();
  EXPECT_TRUE(found == "python3" || std::filesystem::exists(found)) << found;
}

}  // namespace
}  // namespace collage
