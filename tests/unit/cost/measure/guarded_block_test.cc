// guarded_block_test.cc: what is touched around a block is noticed, and the process goes on.
#include "cost/measure/guarded_block.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>

namespace collage {
namespace {

constexpr size_t kBytes = 1000;  // up to 1024 is the block's own line

class GuardedBlockTest : public testing::TestWithParam<BlockPlacement> {
 protected:
  volatile char* At(std::ptrdiff_t offset) const { return static_cast<volatile char*>(block_.data()) + offset; }

  GuardedBlock block_{kBytes, GetParam()};
};

TEST_P(GuardedBlockTest, IsAlignedTo64AndUsable) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block_.data()) % 64, 0);
  for (size_t i = 0; i < kBytes; ++i) *At(static_cast<std::ptrdiff_t>(i)) = 1;
  EXPECT_EQ(block_.Fault(), "");
  block_.Poison();
  EXPECT_TRUE(IsPoison(block_.data(), kBytes));
  *At(5) = 1;
  EXPECT_FALSE(IsPoison(block_.data(), kBytes));
}

TEST_P(GuardedBlockTest, NotesWritesByAPatternNearby) {
  *At(kBytes) = 1;
  EXPECT_EQ(block_.Fault(), "wrote beyond");
}

TEST_P(GuardedBlockTest, NotesWritesBefore) {
  *At(-1) = 1;
  EXPECT_EQ(block_.Fault(), "wrote before");
}

TEST_P(GuardedBlockTest, NotesReadsOfOtherPages) {
  EXPECT_EQ(*At(kBytes + 5000), 0);
  EXPECT_EQ(block_.Fault(), "read beyond");
  *At(kBytes + 5000) = 1;  // memory is open now, and the first fault stays
  EXPECT_EQ(block_.Fault(), "read beyond");
}

TEST_P(GuardedBlockTest, NotesReadsBeforeOfOtherPages) {
  EXPECT_EQ(*At(-5000), 0);
  EXPECT_EQ(block_.Fault(), "read before");
}

TEST_P(GuardedBlockTest, NotesWritesOfOtherPages) {
  *At(kBytes + 5000) = 1;
  EXPECT_EQ(block_.Fault(), "wrote beyond");
}

TEST_P(GuardedBlockTest, NotesWritesWhileItIsReadOnlyThoughTheyAreTakenBack) {
  *At(3) = 1;
  block_.SetReadOnly(true);
  EXPECT_EQ(*At(3), 1);
  EXPECT_EQ(block_.Fault(), "");
  *At(3) = 2;
  *At(3) = 1;
  EXPECT_EQ(block_.Fault(), "wrote to");
}

TEST_P(GuardedBlockTest, LeavesNoHandlerBehind) {
  struct sigaction during {};
  sigaction(SIGSEGV, nullptr, &during);
  EXPECT_NE(during.sa_flags & SA_SIGINFO, 0);
  EXPECT_DEATH(*reinterpret_cast<volatile int*>(8) = 1, "");  // a fault that is nobody's
}

INSTANTIATE_TEST_SUITE_P(Placements, GuardedBlockTest,
                         testing::Values(BlockPlacement::kLeastAligned, BlockPlacement::kAtEnd));

TEST(GuardedBlockTest, ThePlacementsAreWhatTheySay) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{128}, size_t{4096}, size_t{10'000}}) {
    const GuardedBlock least(bytes, BlockPlacement::kLeastAligned);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(least.data()) % 128, 64) << bytes;
    EXPECT_EQ(least.Fault(), "");
    const GuardedBlock at_end(bytes, BlockPlacement::kAtEnd);
    if (bytes == 0) continue;
    EXPECT_EQ((reinterpret_cast<uintptr_t>(at_end.data()) + (bytes + 63) / 64 * 64) % 4096, 0) << bytes;
  }
}

}  // namespace
}  // namespace collage
