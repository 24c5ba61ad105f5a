// number_table_test.cc: numbers by content, also of what has equal hashes.
#include "search/number_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace collage {
namespace {

TEST(NumberTableTest, FindsNumbersByContent) {
  std::vector<int> things;
  NumberTable table;
  const auto number_of = [&](uint64_t hash, int thing) {
    const auto [number, is_new] = table.Emplace(hash, static_cast<int>(things.size()),
                                                [&](int i) { return things[static_cast<size_t>(i)] == thing; });
    if (is_new) things.push_back(thing);
    return number;
  };
  EXPECT_EQ(table.Find(1, [](int) { return true; }), -1);
  for (int thing = 0; thing < 1000; ++thing) EXPECT_EQ(number_of(static_cast<uint64_t>(thing), thing), thing);
  for (int thing = 0; thing < 1000; ++thing) EXPECT_EQ(number_of(static_cast<uint64_t>(thing), thing), thing);
  EXPECT_EQ(things.size(), 1000u);
  const auto find = [&](uint64_t hash, int thing) {
    return table.Find(hash, [&](int i) { return things[static_cast<size_t>(i)] == thing; });
  };
  EXPECT_EQ(find(7, 7), 7);
  EXPECT_EQ(find(7, 8), -1);
  EXPECT_EQ(find(1000, 1000), -1);
}

TEST(NumberTableTest, TellsApartWhatHasEqualHashes) {
  std::vector<int> things;
  NumberTable table;
  for (int pass = 0; pass < 2; ++pass) {
    for (int thing = 0; thing < 100; ++thing) {
      const auto is_equal = [&](int i) { return things[static_cast<size_t>(i)] == thing; };
      const auto [number, is_new] = table.Emplace(5, static_cast<int>(things.size()), is_equal);
      EXPECT_EQ(number, thing);
      EXPECT_EQ(is_new, pass == 0);
      if (is_new) things.push_back(thing);
    }
  }
}

}  // namespace
}  // namespace collage
