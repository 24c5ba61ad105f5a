// string_numbers_test.cc: equal strings have one number, and known ones keep theirs.
#include "collage/support/string_numbers.h"

#include <gtest/gtest.h>

#include "collage/support/error.h"

namespace collage {
namespace {

TEST(StringNumbers, EqualStringsHaveOneNumber) {
  StringNumbers numbers;
  EXPECT_EQ(numbers.Add("cat"), 0);
  EXPECT_EQ(numbers.Add(""), 1);
  EXPECT_EQ(numbers.Add("cat"), 0);
  EXPECT_EQ(numbers.TextOf(1), "");
  EXPECT_EQ(numbers.texts(), (std::vector<std::string>{"cat", ""}));
}

TEST(StringNumbers, OthersComeBehindKnownOnes) {
  const StringNumbers known(std::vector<std::string>{"a", "b"});
  StringNumbers of_run(&known);
  EXPECT_EQ(of_run.Add("b"), 1);
  EXPECT_EQ(of_run.Add("c"), 2);
  EXPECT_EQ(of_run.TextOf(0), "a");
  EXPECT_EQ(of_run.TextOf(2), "c");
  EXPECT_EQ(of_run.texts(), std::vector<std::string>{"c"});
  EXPECT_EQ(StringNumbers(&known).Add("d"), 2);  // each run has its own
}

TEST(StringNumbers, ANumberWithoutAStringIsAnError) {
  StringNumbers numbers;
  numbers.Add("a");
  for (int64_t wrong : {int64_t{-1}, int64_t{1}}) {
    EXPECT_THROW(numbers.TextOf(wrong), Error);
  }
}

}  // namespace
}  // namespace collage
