#include "runtime/huge_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace collage {
namespace {

TEST(HugePagesTest, BeginAtAPageAndAreZero) {
  for (const size_t bytes : {size_t{0}, size_t{1}, kHugePage, 3 * kHugePage + 5}) {
    const std::shared_ptr<std::byte> memory = AllocateHugePages(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % kHugePage, 0U);
    EXPECT_TRUE(std::all_of(memory.get(), memory.get() + bytes, [](std::byte byte) { return byte == std::byte{}; }));
    std::memset(memory.get(), 1, bytes);
  }
}

TEST(HugePagesTest, WhatThereIsNotIsNull) {
  EXPECT_EQ(AllocateHugePages(std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_EQ(AllocateHugePages(size_t{1} << 60), nullptr);
}

}  // namespace
}  // namespace collage
