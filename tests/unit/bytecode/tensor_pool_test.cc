#include "bytecode/tensor_pool.h"

#include <gtest/gtest.h>

#include <optional>

namespace collage::vm {
namespace {

TEST(TensorPoolTest, MemoryIsUsedAgain) {
  TensorPool pool;
  std::optional<Tensor> first = pool.Take({1 << 20}, kFloat32);
  const void* memory = first->raw();
  const Tensor second = pool.Take({1 << 20}, kFloat32);
  EXPECT_NE(second.raw(), memory);
  first.reset();
  // Lengths that grow step by step share a block.
  EXPECT_EQ(pool.Take({(1 << 20) - 5}, kFloat32).raw(), memory);
}

TEST(TensorPoolTest, TensorsOutliveThePool) {
  std::optional<TensorPool> pool(std::in_place);
  const Tensor tensor = pool->Take({1 << 20}, kInt8);
  pool.reset();
  tensor.Set((1 << 20) - 1, 7);
  EXPECT_EQ(tensor.At((1 << 20) - 1), 7);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw()) % 64, 0);
}

TEST(TensorPoolTest, SmallOnesAreTheSystems) {
  TensorPool pool;
  EXPECT_EQ(pool.Take({0, 3}, kFloat32).num_elements(), 0);
  EXPECT_EQ(pool.Take({}, kFloat32).num_elements(), 1);
}

}  // namespace
}  // namespace collage::vm
