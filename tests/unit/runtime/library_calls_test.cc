// library_calls_test.cc: the lines of a kernel's code that name functions; opening libraries is tested with the loader.
#include "runtime/library_calls.h"

#include <gtest/gtest.h>

#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(LibraryCall, LinesAreReadAsTheyWereWritten) {
  const LibraryCall request{LibraryCall::Kind::kRequest, "xsmm", "product float32 m=1", "apt-get install it | that"};
  EXPECT_EQ(request.ToString(), "xsmm|product float32 m=1|apt-get install it | that");
  EXPECT_EQ(LibraryCall::Parse(request.ToString()), request);
  const LibraryCall symbol{LibraryCall::Kind::kSymbol, "libvendor.so.1", "vendor_relu", ""};
  EXPECT_EQ(symbol.ToString(), "file:libvendor.so.1|vendor_relu|");
  EXPECT_EQ(LibraryCall::Parse(symbol.ToString()), symbol);
}

TEST(LibraryCall, DamagedLinesAreCorrupt) {
  for (const std::string line : {"", "xsmm", "xsmm|product", "|product|", "file:|vendor_relu|", "file:/tmp/a.so|f|"}) {
    ExpectError([&] { LibraryCall::Parse(line); }, ErrorCategory::kCorrupt,
                "a kernel's code calls '" + line + "', which is no function");
  }
}

}  // namespace
}  // namespace collage
