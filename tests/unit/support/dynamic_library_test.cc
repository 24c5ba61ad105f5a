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

TEST(DynamicLibrary, MissingSymbolIsNamed) {
  // The runtime library itself is a module that is certainly there.
  ExpectError([] { FindModuleSymbol("libcollage_runtime.so", "no_such_symbol"); }, ErrorCategory::kUnavailable,
              "it lacks the symbol 'no_such_symbol'");
  EXPECT_NE(FindModuleSymbol("libcollage_runtime.so", "collage_parallel_for"), nullptr);
}

}  // namespace
}  // namespace collage
