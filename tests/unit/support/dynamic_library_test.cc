// dynamic_library_test.cc: why a module cannot be opened is said; what opening gives is tested with kernel loaders.
#include "support/dynamic_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/file.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(DynamicLibrary, MissingModuleIsUnavailable) {
  ExpectError([] { FindModuleSymbol("libcollage_no_such.so", "f"); }, ErrorCategory::kUnavailable,
              "cannot open module 'libcollage_no_such.so': the file was not found");
}

TEST(DynamicLibrary, DamagedModuleGivesTheSystemsReason) {
  const TemporaryFolder folder;
  WriteFile(folder / "libcollage_garbage.so", "garbage");
  setenv("COLLAGE_MODULE_PATH", folder.path().c_str(), 1);
  ExpectError([] { FindModuleSymbol("libcollage_garbage.so", "f"); }, ErrorCategory::kUnavailable,
              "libcollage_garbage.so: file too short");
  unsetenv("COLLAGE_MODULE_PATH");
}

TEST(DynamicLibrary, FilesBesideModulesAreFound) {
  const TemporaryFolder folder;
  WriteFile(folder / "data.txt", "data");
  EXPECT_EQ(FindBesideModules("data.txt"), std::nullopt);
  setenv("COLLAGE_MODULE_PATH", ("/nowhere:" + folder.path().string()).c_str(), 1);
  EXPECT_EQ(FindBesideModules("data.txt"), folder / "data.txt");
  unsetenv("COLLAGE_MODULE_PATH");
}

TEST(DynamicLibrary, MissingSymbolIsNamed) {
  // The runtime library itself is a module that is certainly there.
  ExpectError([] { FindModuleSymbol("libcollage_runtime.so", "no_such_symbol"); }, ErrorCategory::kUnavailable,
              "it lacks the symbol 'no_such_symbol'");
  EXPECT_NE(FindModuleSymbol("libcollage_runtime.so", "collage_parallel_for"), nullptr);
}

TEST(DynamicLibrary, LibrariesOfOthersAreFoundWhereTheSystemLooks) {
  EXPECT_NE(FindLibrarySymbol("libc.so.6", "strlen"), nullptr);
  ExpectError([] { FindLibrarySymbol("libc.so.6", "no_such_symbol"); }, ErrorCategory::kUnavailable,
              "library 'libc.so.6' lacks the symbol 'no_such_symbol'");
  ExpectError([] { FindLibrarySymbol("libnobodys.so", "f"); }, ErrorCategory::kUnavailable,
              "cannot open library 'libnobodys.so': libnobodys.so: cannot open shared object file");
}

TEST(DynamicLibrary, TheCallersFoldersComeLast) {
  const TemporaryFolder folder;
  const std::filesystem::path known = folder / "libnobodys.so";
  std::filesystem::create_symlink(FindBesideModules("libcollage_runtime.so").value(), known);
  EXPECT_NE(FindLibrarySymbol("libnobodys.so", "collage_parallel_for", {"/nowhere", folder.path()}), nullptr);
  WriteFile(folder / "libc.so.6", "garbage");
  EXPECT_NE(FindLibrarySymbol("libc.so.6", "strlen", {folder.path()}), nullptr);
}

TEST(DynamicLibrary, PackagesAreInTheFoldersOfTheList) {
  const TemporaryFolder folder;
  const std::filesystem::path packages = folder / "lib/python3/site-packages";
  std::filesystem::create_directories(packages / "collage/lib");
  std::filesystem::create_directories(packages / "vendor/lib");
  std::filesystem::create_directories(folder / "built_with/other");
  EXPECT_EQ(FindInPackages("vendor/lib"), std::nullopt);
  WriteFile(packages / "collage/lib" / kPackagesFile, "../..\n" + (folder / "built_with").string() + "\n");
  setenv("COLLAGE_MODULE_PATH", (packages / "collage/lib").c_str(), 1);
  EXPECT_EQ(PackageFolders(), (std::vector<std::filesystem::path>{packages, folder / "built_with"}));
  EXPECT_EQ(FindInPackages("vendor/lib"), packages / "vendor/lib");
  EXPECT_EQ(FindInPackages("other"), folder / "built_with/other");
  EXPECT_EQ(FindInPackages("none"), std::nullopt);
  EXPECT_EQ(FindInPackages(packages / "vendor"), packages / "vendor");
  EXPECT_EQ(FindInPackages("/none"), std::nullopt);
  unsetenv("COLLAGE_MODULE_PATH");
}

TEST(DynamicLibrary, ModulesFindTheLibrariesOfPackagesThatTheyAreLinkedWith) {
  const TemporaryFolder folder;
  const std::filesystem::path modules = folder / "modules", vendor = folder / "packages/vendor/lib";
  std::filesystem::create_directories(modules);
  std::filesystem::create_directories(vendor);
  const auto build = [&](const std::string& source, const std::filesystem::path& library, const std::string& more) {
    WriteFile(folder / "source.c", source);
    const std::string command = "cc -shared -fPIC -o '" + library.string() + "' '" + (folder / "source.c").string() +
                                "' " + more + " 2> /dev/null";
    return std::system(command.c_str()) == 0;
  };
  const std::filesystem::path library = vendor / "libvendor.so.1", module = modules / "libcollage_rt_acme.so";
  if (!build("int vendor(void) { return 1; }", library, "-Wl,-soname,libvendor.so.1")) GTEST_SKIP() << "no compiler";
  ASSERT_TRUE(build("int vendor(void); int acme(void) { return vendor(); }", module, "'" + library.string() + "'"));
  setenv("COLLAGE_MODULE_PATH", modules.c_str(), 1);
  const auto find = [] { return FindModuleSymbol("libcollage_rt_acme.so", "acme"); };
  ExpectError(find, ErrorCategory::kUnavailable, "libvendor.so.1: cannot open shared object file");
  WriteFile(modules / kPackagesFile, "../packages\n");
  WriteFile(modules / kModuleLibrariesFile, "libcollage_rt_acme.so vendor/lib/libnone.so\n");
  ExpectError(find, ErrorCategory::kUnavailable, "libvendor.so.1: cannot open shared object file");
  WriteFile(modules / kModuleLibrariesFile, "libother.so none\nlibcollage_rt_acme.so vendor/lib/libvendor.so.1\n");
  EXPECT_EQ(reinterpret_cast<int (*)()>(find())(), 1);
  unsetenv("COLLAGE_MODULE_PATH");
}

TEST(DynamicLibrary, FoldersOfTheVariableComeBeforeTheSystems) {
  const TemporaryFolder folder;
  WriteFile(folder / "libc.so.6", "garbage");
  WriteFile(folder / "libnobodys.so", "garbage");
  setenv("COLLAGE_LIBRARY_PATH", (":" + folder.path().string() + ":/nowhere").c_str(), 1);
  EXPECT_NE(FindLibrarySymbol("libc.so.6", "strlen"), nullptr) << "a file that cannot be opened is passed over";
  ExpectError([] { FindLibrarySymbol("libnobodys.so", "f"); }, ErrorCategory::kUnavailable,
              folder.path().string() + "/libnobodys.so: file too short");
  unsetenv("COLLAGE_LIBRARY_PATH");
}

}  // namespace
}  // namespace collage
