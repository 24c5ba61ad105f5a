// library_calls_test.cc: the lines of a kernel's code that name functions; opening libraries is tested with the loader.
#include "runtime/library_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/file.h"
#include "test_paths.h"
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

std::string ObjectText(const std::string& name) {
  return ReadFile(std::string(kTestKernels) + "/test_kernel_" + name + ".so");
}

std::vector<LibraryCall> CallsIn(const std::string& object) {
  return CallsOf({reinterpret_cast<const std::byte*>(object.data()), object.size()});
}

TEST(LibraryCall, AreReadFromCodeThatIsNotOpened) {
  const LibraryCall symbol{LibraryCall::Kind::kSymbol, "test_kernel_nobodys.so", "vendor_double", "install vendor 2"};
  EXPECT_EQ(CallsIn(ObjectText("nobodys_vendor_double")), std::vector{symbol});
  const LibraryCall request{LibraryCall::Kind::kRequest, "nobodys", "product float32 m=1", "apt-get install nobodys"};
  EXPECT_EQ(CallsIn(ObjectText("calls")), std::vector{request});
  EXPECT_TRUE(CallsIn(ObjectText("add_10")).empty());
  EXPECT_TRUE(CallsIn("").empty());
  EXPECT_TRUE(
      CallsIn("garbage that is longer than the header of an ELF file, which it is not, whatever it says").empty());
}

TEST(LibraryCall, DamagedCodeCallsNothingOrSaysSo) {
  const std::string object = ObjectText("calls");
  for (size_t size = 0; size < object.size(); size += 61) {
    const size_t most = size < object.size() / 2 ? 0 : 1;  // what says where all is lies at the end
    EXPECT_LE(CallsIn(object.substr(0, size)).size(), most) << size;
  }
  // Headers that say anything: offsets beyond the file, counts of any size.
  for (size_t at = 16; at < 2000; ++at) {
    std::string damaged = object;
    damaged[at] = '\xff';
    try {
      EXPECT_LE(CallsIn(damaged).size(), 1) << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.category(), ErrorCategory::kCorrupt) << at;
    }
  }
}

}  // namespace
}  // namespace collage
