// hash_test.cc: digests differ where texts differ, checksums are zlib's.
#include "support/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace collage {
namespace {

TEST(Hash, DigestIs32HexDigitsAndStable) {
  const std::string digest = HexDigest("collage");
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_EQ(digest.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(digest, HexDigest("collage"));
  EXPECT_EQ(digest, HexDigest(std::string("collage")));
}

TEST(Hash, TextsThatDifferALittleDiffer) {
  std::set<std::string> digests;
  int count = 0;
  const auto add = [&](const std::string& text) {
    digests.insert(HexDigest(text));
    ++count;
  };
  for (size_t length = 0; length < 70; ++length) add(std::string(length, '\0'));
  for (size_t at = 0; at < 70; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text(70, 'a');
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      add(text);
    }
  }
  EXPECT_EQ(static_cast<int>(digests.size()), count);
}

TEST(Hash, PiecesAreNotInterchangeable) {
  Hasher ab;
  ab.Add("a");
  ab.Add("bc");
  Hasher ba;
  ba.Add("ab");
  ba.Add("c");
  EXPECT_NE(ab.Hex(), ba.Hex());
  Hasher numbers;
  numbers.AddInt(1);
  numbers.AddInt(2);
  Hasher swapped;
  swapped.AddInt(2);
  swapped.AddInt(1);
  EXPECT_NE(numbers.Hex(), swapped.Hex());
  EXPECT_NE(numbers.low(), swapped.low());
}

TEST(Hash, EachInputBitChangesAboutHalfOfTheDigest) {
  const auto bits_that_differ = [](const std::string& a, const std::string& b) {
    int count = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
      count += __builtin_popcount(static_cast<unsigned>(digit(a[i]) ^ digit(b[i])));
    }
    return count;
  };
  const std::string base(24, 'q');
  for (size_t at = 0; at < base.size(); ++at) {
    std::string other = base;
    other[at] = static_cast<char>(other[at] ^ 4);
    const int changed = bits_that_differ(HexDigest(base), HexDigest(other));
    EXPECT_GT(changed, 32) << at;  // of 128; five standard deviations from 64 is 36
    EXPECT_LT(changed, 96) << at;
  }
}

TEST(Hash, Crc32IsTheStandardOne) {
  EXPECT_EQ(Crc32("123456789", 9), 0xcbf43926u);  // the check value of every CRC-32 table
  EXPECT_EQ(Crc32("", 0), 0u);
}

}  // namespace
}  // namespace collage
