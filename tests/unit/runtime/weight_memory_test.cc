// weight_memory_test.cc
#include "runtime/weight_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>

namespace collage {
namespace {

TEST(WeightMemoryTest, PiecesLieBehindEachOtherAndApart) {
  const std::shared_ptr<void> first = AllocateWeights(100);
  const std::shared_ptr<void> second = AllocateWeights(1);
  const auto address = [](const std::shared_ptr<void>& piece) { return reinterpret_cast<uintptr_t>(piece.get()); };
  EXPECT_EQ(address(first) % 64, 0U);
  EXPECT_EQ(address(second), address(first) + 128);
}

TEST(WeightMemoryTest, EmptyAndHugePiecesWork) {
  EXPECT_NE(AllocateWeights(0), nullptr);
  constexpr size_t kBytes = size_t{100} << 20;
  const std::shared_ptr<void> large = AllocateWeights(kBytes);
  const std::shared_ptr<void> after = AllocateWeights(64);
  std::memset(large.get(), 1, kBytes);
  std::memset(after.get(), 2, 64);
  EXPECT_EQ(static_cast<const char*>(large.get())[kBytes - 1], 1);
}

TEST(WeightMemoryTest, APieceOutlivesThoseThatShareItsPage) {
  std::shared_ptr<void> first = AllocateWeights(64);
  const std::shared_ptr<void> second = AllocateWeights(64);
  std::memset(second.get(), 7, 64);
  first.reset();
  const std::shared_ptr<void> third = AllocateWeights(64);
  std::memset(third.get(), 8, 64);
  EXPECT_EQ(static_cast<const char*>(second.get())[63], 7);
}

TEST(WeightMemoryTest, ThreadsGetPiecesOfTheirOwn) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const std::shared_ptr<void> piece = AllocateWeights(1000);
        std::memset(piece.get(), t, 1000);
        EXPECT_EQ(static_cast<const char*>(piece.get())[999], t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ResidentConstantsTest, KernelsOfOneConstantShareItsCopy) {
  ResidentConstants constants;
  const Tensor weight = Tensor::Zeros({3, 5}, kFloat32);
  weight.Set(14, 2.5);
  const std::vector<Tensor> once = constants.Get(std::vector{weight, weight});
  const std::vector<Tensor> again = constants.Get(std::vector{weight});
  EXPECT_NE(once[0].raw(), weight.raw());
  EXPECT_EQ(once[0].raw(), once[1].raw());
  EXPECT_EQ(once[0].raw(), again[0].raw());
  EXPECT_EQ(once[0].shape(), weight.shape());
  EXPECT_EQ(once[0].At(14), 2.5);
}

TEST(ResidentConstantsTest, AnAddressThatIsUsedAgainIsCopiedAgain) {
  ResidentConstants constants;
  const std::shared_ptr<void> neighbour = AllocateWeights(64);  // keeps the page, not the copies
  const Tensor weight = Tensor::Zeros({4}, kFloat32);
  EXPECT_EQ(constants.Get(std::vector{weight})[0].At(0), 0);
  weight.Set(0, 1);  // all copies are gone: what lies here now may be another weight
  EXPECT_EQ(constants.Get(std::vector{weight})[0].At(0), 1);
}

}  // namespace
}  // namespace collage
