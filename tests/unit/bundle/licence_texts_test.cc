// licence_texts_test.cc: packages of files, on Debian.
#include "bundle/licence_texts.h"

#include <gtest/gtest.h>

#include "bundle/elf_image.h"
#include "bundle/shared_libraries.h"
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
  EXPECT_EQ(texts.by_package.at("libstdc++6"), "/usr/share/doc/libstdc++6/copyright");
  EXPECT_EQ(texts.without, (std::vector<std::string>{"own.so", "lost.so"}));
}

}  // namespace
}  // namespace collage
