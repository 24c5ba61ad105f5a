#include "support/programs/find_python.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/dynamic_library.h"
#include "support/file.h"

namespace collage {
namespace {

TEST(FindPythonTest, TheChosenOneCountsElseThatOfTheBuildElseTheSystems) {
  ASSERT_EQ(setenv("COLLAGE_PYTHON", "/opt/python", 1), 0);
  EXPECT_EQ(FindPython(), "/opt/python");
  ASSERT_EQ(unsetenv("COLLAGE_PYTHON"), 0);
  const std::string found = FindPython();
  EXPECT_TRUE(found == "python3" || std::filesystem::exists(found)) << found;
}

TEST(FindPythonTest, AnEnvironmentsPythonIsThatOfItsPackages) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "bin");
  std::filesystem::create_directories(folder / "lib/python3/site-packages/collage/lib");
  WriteFile(folder / "bin/python", "");
  WriteFile(folder / "lib/python3/site-packages/collage/lib" / kPackagesFile, "../..\n");
  ASSERT_EQ(setenv("COLLAGE_MODULE_PATH", (folder / "lib/python3/site-packages/collage/lib").c_str(), 1), 0);
  EXPECT_EQ(FindPython(), (folder / "bin/python").string());
  ASSERT_EQ(unsetenv("COLLAGE_MODULE_PATH"), 0);
}

}  // namespace
}  // namespace collage
