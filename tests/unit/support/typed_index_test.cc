#include "support/typed_index.h"

#include <gtest/gtest.h>

#include <concepts>
#include <string>
#include <unordered_set>

namespace collage {
namespace {

using Apple = TypedIndex<struct AppleKind>;
using Pear = TypedIndex<struct PearKind>;

// Mixtures of kinds must not compile.
static_assert(!std::convertible_to<int, Apple> && !std::convertible_to<Apple, int>);
static_assert(!std::convertible_to<Apple, Pear> && !std::equality_comparable_with<Apple, Pear>);

template <class List, class Number>
constexpr bool kCanIndex = requires(List list, Number number) {
  list[number];
};
static_assert(kCanIndex<IndexedVector<Apple, int>, Apple>);
static_assert(!kCanIndex<IndexedVector<Apple, int>, Pear> && !kCanIndex<IndexedVector<Apple, int>, int>);

TEST(TypedIndexTest, CountsAndCompares) {
  Apple apple(3);
  EXPECT_EQ(++apple, Apple(4));
  EXPECT_EQ(apple + 2, Apple(6));
  EXPECT_EQ(apple - 4, Apple());
  EXPECT_LT(Apple(3), apple);
  EXPECT_EQ((std::unordered_set<Apple>{Apple(1), Apple(1), Apple(2)}).size(), 2u);
}

TEST(TypedIndexTest, AVectorIsReadByItsIndices) {
  IndexedVector<Apple, std::string> names;
  EXPECT_EQ(names.next(), Apple(0));
  names.push_back("Boskoop");
  names.push_back("Elstar");
  std::string all;
  for (Apple apple : names.indices()) all += std::to_string(apple.number()) + names[apple];
  EXPECT_EQ(all, "0Boskoop1Elstar");
  EXPECT_THROW(names.at(names.next()), std::out_of_range);
  EXPECT_EQ(NumbersOf<AppleKind>({Apple(2), Apple(0)}), (std::vector<int>{2, 0}));
}

TEST(TypedIndexTest, AVectorOfBitsIsOneToo) {
  IndexedVector<Apple, bool> is_ripe(2);
  is_ripe[Apple(1)] = true;
  EXPECT_FALSE(is_ripe[Apple(0)]);
  EXPECT_TRUE(is_ripe[Apple(1)]);
}

}  // namespace
}  // namespace collage
