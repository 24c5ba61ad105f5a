// checksum_test.cc: checksums of files.
#include "support/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace collage {
namespace {

TEST(Checksum, IsXxh3) {
  // Files are checked with it: another one would refuse them all.
  EXPECT_EQ(Checksum("", 0), 0x2d06800538d394c2u);
  const std::string text(1000, 'a');
  const uint64_t whole = Checksum(text.data(), text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] ^= 1;
    EXPECT_NE(Checksum(changed.data(), changed.size()), whole) << at;
  }
}

}  // namespace
}  // namespace collage
