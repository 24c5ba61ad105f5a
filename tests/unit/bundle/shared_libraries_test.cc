// shared_libraries_test.cc: the dynamic linker's answer.
#include "bundle/shared_libraries.h"

#include <gtest/gtest.h>

#include "bundle/elf_image.h"
#include "support/file.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

std::filesystem::path Self() { return std::filesystem::read_symlink("/proc/self/exe"); }

TEST(SharedLibraries, AreFoundWithThoseThatTheyNeed) {
  const auto libraries = SharedLibrariesOf(Self(), ElfImage::Read(Self()).Interpreter());
  for (const char* name : {"libcollage.so.", "libcollage_runtime.so.", "libstdc++.so.6", "libgcc_s.so.1"}) {
    const auto found = libraries.lower_bound(name);
    ASSERT_TRUE(found != libraries.end() && found->first.starts_with(name)) << name;
    EXPECT_TRUE(std::filesystem::exists(found->second)) << found->second;
  }
  for (const auto& [name, path] : libraries) EXPECT_FALSE(IsPartOfLibc(name)) << name;
}

TEST(SharedLibraries, ThoseOfTheCLibraryAreTold) {
  for (const char* name : {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "libresolv.so.2"}) {
    EXPECT_TRUE(IsPartOfLibc(name)) << name;
  }
  for (const char* name : {"libcollage.so", "libcrypto.so.3", "libstdc++.so.6", "libmkl_rt.so.2"}) {
    EXPECT_FALSE(IsPartOfLibc(name)) << name;
  }
}

TEST(SharedLibraries, MissingOnesAreNamed) {
  const TemporaryFolder folder;
  ElfImage image = ElfImage::Read(Self());
  const std::string interpreter = image.Interpreter();
  image.SetSearchPath("/none", false);
  WriteFile(folder / "lost", image.bytes());
  ExpectError([&] { SharedLibrariesOf(folder / "lost", interpreter); }, ErrorCategory::kUnavailable,
              "error while loading shared libraries: libcollage");
  WriteFile(folder / "text", "no program");
  ExpectError([&] { SharedLibrariesOf(folder / "text", interpreter); }, ErrorCategory::kUnavailable,
              "the dynamic linker cannot load it");
  ExpectError([&] { SharedLibrariesOf(Self(), "/none/ld.so"); }, ErrorCategory::kUnavailable,
              "cannot run '/none/ld.so'");
}

}  // namespace
}  // namespace collage
