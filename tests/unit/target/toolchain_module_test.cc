#include "collage/target/toolchain_module.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace collage {
namespace {

class ToolchainModuleTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() / ("collage_modules_" + name + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    setenv("COLLAGE_MODULE_PATH", ("/nowhere:" + folder_.string()).c_str(), 1);
  }
  void TearDown() override {
    unsetenv("COLLAGE_MODULE_PATH");
    std::filesystem::remove_all(folder_);
  }

  void Write(const std::string& file, const std::string& text) const { std::ofstream(folder_ / file) << text; }
  /// Builds a module of C; false where there is no compiler.
  bool Build(const std::string& file, const std::string& source) const {
    Write("module.c", source);
    const std::string command = "cc -shared -fPIC -o '" + (folder_ / file).string() + "' '" +
                                (folder_ / "module.c").string() + "' 2> /dev/null";
    return std::system(command.c_str()) == 0;
  }
  static Availability ProbeOf(const std::string& name) {
    ToolchainRegistry registry;
    AddToolchainModules(registry);
    const Toolchain* toolchain = registry.Find(name);
    EXPECT_NE(toolchain, nullptr);
    return toolchain == nullptr ? Availability{} : toolchain->Probe();
  }

  std::filesystem::path folder_;
};

TEST_F(ToolchainModuleTest, AHintNamesTheVariableWhoseFoldersAreSearched) {
  ToolchainRegistry registry;
  EXPECT_EQ(registry.HintFor("acme"), "no folder of COLLAGE_MODULE_PATH has a module 'libcollage_toolchain_acme.so'");
  unsetenv("COLLAGE_MODULE_PATH");
  EXPECT_EQ(registry.HintFor("acme"),
            "for one of your own, set COLLAGE_MODULE_PATH to the folder of 'libcollage_toolchain_acme.so'");
}

TEST_F(ToolchainModuleTest, WhatCannotBeOpenedIsListedWithTheReason) {
  Write("libcollage_toolchain_garbage.so", "this is no library");
  Write("libcollage_toolchain_ignored.txt", "nor is this");
  const Availability here = ProbeOf("garbage");
  EXPECT_FALSE(here.available);
  EXPECT_TRUE(here.reason.starts_with("its module cannot be opened: ")) << here.reason;
  EXPECT_NE(here.hint.find("libcollage_toolchain_garbage.so"), std::string::npos) << here.hint;
  ToolchainRegistry registry;
  AddToolchainModules(registry);
  EXPECT_EQ(registry.All().size(), 1u);
  const PartitionRequest request{nullptr, {}, 1};
  EXPECT_EQ(registry.Find("garbage")->RelayToRuntime(request).reason().text, here.reason);
}

TEST_F(ToolchainModuleTest, ModulesOfAnotherKindOrInterfaceAreRefused) {
  if (!Build("libcollage_toolchain_empty.so", "int nothing;")) GTEST_SKIP() << "there is no C compiler";
  EXPECT_EQ(ProbeOf("empty").reason, "its module lacks the symbol 'collage_toolchain_module'");
  ASSERT_TRUE(Build("libcollage_toolchain_old.so",
                    "struct { int number; void* make; } const collage_toolchain_module = {999, 0};"));
  EXPECT_EQ(ProbeOf("old").reason, "its module was built for interface 999, this is " +
                                       std::to_string(kToolchainInterface) + ": build it again");
}

TEST_F(ToolchainModuleTest, WhatIsAddedAlreadyStays) {
  Write("libcollage_toolchain_garbage.so", "this is no library");
  ToolchainRegistry registry;
  AddToolchainModules(registry);
  AddToolchainModules(registry);
  EXPECT_EQ(registry.All().size(), 1u);
}

TEST_F(ToolchainModuleTest, MissingModulesAreNamed) {
  Write("libcollage_rt_here.so", "");
  EXPECT_EQ(WhyModuleMissing({"libcollage_rt_here.so"}), std::nullopt);
  const std::optional<std::string> missing = WhyModuleMissing({"libcollage_rt_here.so", "libcollage_rt_gone.so"});
  ASSERT_TRUE(missing.has_value());
  EXPECT_TRUE(missing->starts_with("its module 'libcollage_rt_gone.so' is in no folder")) << *missing;
}

TEST_F(ToolchainModuleTest, LibrariesAreWhereTheyWereOrBesideModules) {
  Write("libcarried.so.1", "");
  EXPECT_EQ(WhyLibraryMissing((folder_ / "libcarried.so.1").string()), std::nullopt);
  EXPECT_EQ(WhyLibraryMissing("/opt/vendor/lib/libcarried.so.1"), std::nullopt);
  EXPECT_EQ(WhyLibraryMissing("/opt/vendor/lib/libgone.so.1"), "its library '/opt/vendor/lib/libgone.so.1' is gone");
  EXPECT_EQ(WhyLibraryMissing("vendor/lib/libgone.so.1"),
            "its library 'libgone.so.1' is not installed in this Python environment");
  Write("collage_packages.txt", "packages\n");
  std::filesystem::create_directories(folder_ / "packages/vendor/lib");
  Write("packages/vendor/lib/libgone.so.1", "");
  EXPECT_EQ(WhyLibraryMissing("vendor/lib/libgone.so.1"), std::nullopt);
}

}  // namespace
}  // namespace collage
