// elf_image_test.cc: what the dynamic linker finds after an image was changed, and damaged files.
#include "bundle/elf_image.h"

#include <gtest/gtest.h>

#include "support/file.h"
#include "support/programs/run_tool.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

/// This test: linked with Collage's libraries, which it finds by a path of its own.
ElfImage Self() { return ElfImage::Read(std::filesystem::read_symlink("/proc/self/exe")); }

/// The file that `library`, "libcollage_ir.so", is a link to: its name is the one that programs ask for.
std::filesystem::path VersionOf(const std::filesystem::path& library) {
  return library.parent_path() / std::filesystem::read_symlink(library);
}

void WriteProgram(const std::filesystem::path& path, const ElfImage& image) {
  WriteFile(path, image.bytes());
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST(ElfImage, TellsWhatTheDynamicLinkerReads) {
  const ElfImage image = Self();
  EXPECT_TRUE(image.Interpreter().starts_with("/lib")) << image.Interpreter();
  EXPECT_NE(image.SearchPath(), "");
  EXPECT_GE(image.NeededLibc(), std::pair(2, 14)) << "memcpy alone needs that on x86-64";
  EXPECT_LT(image.NeededLibc(), std::pair(3, 0));
  EXPECT_TRUE(ElfImage::IsImage("/proc/self/exe"));
  EXPECT_FALSE(ElfImage::IsImage("/proc/self/status"));
  EXPECT_FALSE(ElfImage::IsImage("/none"));
}

TEST(ElfImage, AStrippedProgramStillRuns) {
  const TemporaryFolder folder;
  ElfImage image = Self();
  const size_t before = image.bytes().size();
  image.Strip();
  EXPECT_LT(image.bytes().size(), before);
  WriteProgram(folder / "stripped", image);
  const ToolResult listed = RunTool({(folder / "stripped").string(), "--gtest_list_tests"});
  EXPECT_EQ(listed.status, 0) << listed.output;
  EXPECT_NE(listed.output.find("AStrippedProgramStillRuns"), std::string::npos) << listed.output;
}

TEST(ElfImage, LibrariesAreLookedForInTheNewPath) {
  const TemporaryFolder folder;
  ElfImage image = Self();
  const std::string old = image.SearchPath();
  image.SetSearchPath("$ORIGIN/x", /*is_inherited=*/true);
  EXPECT_EQ(image.SearchPath(), "$ORIGIN/x");
  WriteProgram(folder / "moved", image);
  EXPECT_EQ(ElfImage::Read(folder / "moved").SearchPath(), "$ORIGIN/x");
  const ToolResult refused = RunTool({(folder / "moved").string(), "--gtest_list_tests"});
  EXPECT_NE(refused.status, 0) << "its libraries are not there";
  std::filesystem::create_directory(folder / "x");
  for (const auto& entry : std::filesystem::directory_iterator(old.substr(0, old.find(':')))) {
    const std::string name = entry.path().filename().string();
    if (name.find(".so") != name.npos) std::filesystem::create_symlink(entry.path(), folder / "x" / name);
  }
  const ToolResult found = RunTool({(folder / "moved").string(), "--gtest_list_tests"});
  EXPECT_EQ(found.status, 0) << found.output;
}

TEST(ElfImage, LibrariesAreLookedForByTheirNewNames) {
  const TemporaryFolder folder;
  ElfImage image = Self();
  const std::filesystem::path libraries = image.SearchPath().substr(0, image.SearchPath().find(':'));
  const std::filesystem::path compiler = VersionOf(libraries / "libcollage.so");
  const std::string name = compiler.filename().string(), new_name = "clg" + name.substr(3);
  const std::map<std::string, std::string> names{{name, new_name}};
  image.SetSearchPath("$ORIGIN", /*is_inherited=*/true);
  image.RenameLibraries(names);
  WriteProgram(folder / "renamed", image);
  for (const char* other : {"libcollage_ir.so", "libcollage_runtime.so"}) {
    const std::filesystem::path file = VersionOf(libraries / other);
    std::filesystem::create_symlink(file, folder / file.filename());
  }
  const ToolResult refused = RunTool({(folder / "renamed").string(), "--gtest_list_tests"});
  EXPECT_NE(refused.status, 0) << "its libraries have other names";
  ElfImage library = ElfImage::Read(compiler);
  library.RenameLibraries(names);
  WriteFile(folder / new_name, library.bytes());
  const ToolResult found = RunTool({(folder / "renamed").string(), "--gtest_list_tests"});
  EXPECT_EQ(found.status, 0) << found.output;
}

TEST(ElfImage, ANewNameHasTheLengthOfTheOld) {
  ElfImage image = Self();
  const std::filesystem::path libraries = image.SearchPath().substr(0, image.SearchPath().find(':'));
  const std::string name = VersionOf(libraries / "libcollage.so").filename().string(), longer = name + ".1";
  ExpectError(
      [&] {
        image.RenameLibraries({{name, longer}});
      },
      ErrorCategory::kUnsupported, "cannot write '" + longer + "' in the place of '" + name + "'");
  const std::string before = image.bytes();
  image.RenameLibraries({{"libnone.so.1", "clgnone.so.1"}});
  EXPECT_EQ(image.bytes(), before);
}

TEST(ElfImage, ALongerPathHasNoRoom) {
  ElfImage image = Self();
  const std::string longer(image.SearchPath().size() + 1, 'x');
  ExpectError([&] { image.SetSearchPath(longer, false); }, ErrorCategory::kUnsupported, "the file has room for");
}

TEST(ElfImage, DamagedFilesAreRefused) {
  const TemporaryFolder folder;
  const auto expect_refused = [&](const std::string& bytes) {
    WriteFile(folder / "file", bytes);
    ExpectError([&] { ElfImage::Read(folder / "file"); }, ErrorCategory::kInput, "expected a dynamic ELF-64 file");
  };
  expect_refused("");
  expect_refused("text");
  const std::string whole = Self().bytes();
  expect_refused(whole.substr(0, 64));
  expect_refused(whole.substr(0, whole.size() / 2));
  std::string narrow = whole;
  narrow[EI_CLASS] = ELFCLASS32;
  expect_refused(narrow);
}

TEST(ElfImage, NoByteOfTheHeadersCrashesIt) {
  const TemporaryFolder folder;
  const std::string whole = Self().bytes();
  constexpr size_t kHeaders = 1024;  // the file's, the segments'
  for (size_t i = 0; i < kHeaders; i += 7) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0xff);
    WriteFile(folder / "file", changed);
    try {
      ElfImage image = ElfImage::Read(folder / "file");
      image.NeededLibc();
      image.Interpreter();
      image.SetSearchPath("$ORIGIN", true);
      image.Strip();
    } catch (const Error& error) {
      EXPECT_NE(error.category(), ErrorCategory::kInternal) << error.what();
    }
  }
}

}  // namespace
}  // namespace collage
