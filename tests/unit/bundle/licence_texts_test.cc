// licence_texts_test.cc: packages of files, on Debian.
#include "bundle/licence_texts.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "bundle/elf_image.h"
#include "bundle/shared_libraries.h"
#include "support/dynamic_library.h"
#include "support/file.h"

namespace collage {
namespace {

TEST(LicenceTexts, AreThoseOfPackages) {
  if (!std::filesystem::exists("/usr/share/doc/libstdc++6/copyright"))
    GTEST_SKIP() << "libstdc++ is of no Debian package";
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const auto libraries = SharedLibrariesOf(self, ElfImage::Read(self).Interpreter());
  const TemporaryFolder folder;
  WriteFile(folder / "own.so", "");
  const LicenceTexts texts = FindLicenceTexts({libraries.at("libstdc++.so.6"), folder / "own.so", "/none/lost.so"});
  ASSERT_EQ(texts.by_package.size(), 1U);
  EXPECT_EQ(texts.by_package.at("libstdc++6"),
            (std::vector<std::filesystem::path>{"/usr/share/doc/libstdc++6/copyright"}));
  EXPECT_EQ(texts.without, (std::vector<std::string>{"own.so", "lost.so"}));
}

TEST(LicenceTexts, AreThoseOfPythonPackages) {
  const TemporaryFolder folder;
  const std::filesystem::path packages = folder / "lib/python3/site-packages";
  std::filesystem::create_directories(packages / "vendor-1.0.dist-info");
  WriteFile(folder / "lib/libvendor.so.1", "");
  WriteFile(folder / "lib/libother.so.1", "");
  WriteFile(packages / "vendor-1.0.dist-info/LICENSE.txt", "the licence");
  WriteFile(packages / "vendor-1.0.dist-info/RECORD",
            "../../libvendor.so.1,sha256=x,0\nvendor-1.0.dist-info/LICENSE.txt,sha256=y,11\n");
  WriteFile(packages / kPackagesFile, ".\n");
  setenv("COLLAGE_MODULE_PATH", packages.c_str(), 1);
  const LicenceTexts texts = FindLicenceTexts({folder / "lib/libvendor.so.1", folder / "lib/libother.so.1"});
  unsetenv("COLLAGE_MODULE_PATH");
  ASSERT_EQ(texts.by_package.size(), 1U);
  ASSERT_EQ(texts.by_package.at("vendor-1.0").size(), 1U);
  EXPECT_EQ(ReadFile(texts.by_package.at("vendor-1.0")[0]), "the licence");
  EXPECT_EQ(texts.without, (std::vector<std::string>{"libother.so.1"}));
}

}  // namespace
}  // namespace collage
