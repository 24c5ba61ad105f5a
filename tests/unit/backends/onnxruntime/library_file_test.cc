// library_file_test.cc: where the library is looked for, in which order, and what its file's name says.
#include "backends/onnxruntime/library_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/dynamic_library.h"
#include "support/file.h"

namespace collage::onnxruntime {
namespace {

namespace fs = std::filesystem;

/// A folder of modules with a list of Python packages, which are in a folder beside it.
class OnnxRuntimeLibraryFile : public testing::Test {
 protected:
  OnnxRuntimeLibraryFile() {
    fs::create_directories(modules_);
    WriteFile(modules_ / kPackagesFile, "../packages\n");
    setenv("COLLAGE_MODULE_PATH", modules_.c_str(), 1);
    unsetenv("COLLAGE_ONNXRUNTIME");
  }
  ~OnnxRuntimeLibraryFile() override {
    unsetenv("COLLAGE_MODULE_PATH");
    unsetenv("COLLAGE_ONNXRUNTIME");
  }

  static fs::path Make(const fs::path& file) {
    fs::create_directories(file.parent_path());
    WriteFile(file, "");
    return file;
  }

  TemporaryFolder folder_;
  fs::path modules_ = fs::canonical(folder_.path()) / "modules";
  fs::path wheel_ = fs::canonical(folder_.path()) / "packages/onnxruntime/capi";
};

TEST_F(OnnxRuntimeLibraryFile, IsTheOneOfTheWheel) {
  Make(wheel_ / "libonnxruntime_providers_shared.so");
  const fs::path file = Make(wheel_ / "libonnxruntime.so.9.8.7");
  ASSERT_TRUE(FindLibrary().ok());
  EXPECT_EQ(*FindLibrary(), file);
  EXPECT_EQ(VersionOf(file), "9.8.7");
}

TEST_F(OnnxRuntimeLibraryFile, HintedOnesComeFirstAndTheSystemLast) {
  const fs::path bundled = Make(modules_ / "libonnxruntime.so.2");
  const fs::path own = Make(wheel_ / "libonnxruntime.so.1");
  const fs::path hinted = Make(folder_ / "libonnxruntime.so.3");
  EXPECT_EQ(LibraryPaths(hinted), (std::vector<fs::path>{hinted, own, bundled, "libonnxruntime.so.1"}));
  EXPECT_EQ(LibraryPaths("/nowhere/libonnxruntime.so"), LibraryPaths(""));
}

TEST_F(OnnxRuntimeLibraryFile, IsTheOneThatTheUserChoseAndNoOther) {
  Make(wheel_ / "libonnxruntime.so.9.8.7");
  setenv("COLLAGE_ONNXRUNTIME", "/nowhere/ort.so", 1);
  EXPECT_EQ(LibraryPaths("/hinted"), std::vector<fs::path>{"/nowhere/ort.so"});
  ASSERT_FALSE(FindLibrary().ok());
  EXPECT_EQ(FindLibrary().reason().text, "its library '/nowhere/ort.so' is not there");
  const fs::path file = Make(folder_ / "ort.so");
  setenv("COLLAGE_ONNXRUNTIME", file.c_str(), 1);
  ASSERT_TRUE(FindLibrary().ok());
  EXPECT_EQ(*FindLibrary(), file);
  EXPECT_EQ(VersionOf(file), "unknown");
}

TEST_F(OnnxRuntimeLibraryFile, WhereThereIsNoneTheWheelIsMissing) {
  ASSERT_FALSE(FindLibrary().ok());
  EXPECT_EQ(FindLibrary().reason().text, "the wheel 'onnxruntime' is not installed");
  EXPECT_EQ(FindLibrary().reason().origin, "onnxruntime");
}

TEST_F(OnnxRuntimeLibraryFile, BundlesFindTheirCopyAgain) {
  for (const char* name : {"libonnxruntime.so.9.8.7", "ort.so"}) {
    const fs::path copy = Make(modules_ / BundledName(folder_ / name));
    ASSERT_TRUE(FindLibrary().ok());
    EXPECT_EQ(*FindLibrary(), copy);
    fs::remove(copy);
  }
}

}  // namespace
}  // namespace collage::onnxruntime
