// tensor_pool.cc: blocks by size, sizes being rounded up so that lengths that grow step by step share them.
#include "bytecode/tensor_pool.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace collage::vm {
namespace {

/// Size up to which the system's allocator needs no pages from the kernel.
constexpr size_t kSmall = size_t{64} << 10;
/// Blocks that wait for their next use, at most.
constexpr size_t kMostWaiting = size_t{256} << 20;

/// Up to a quarter more.
size_t Rounded(size_t bytes) {
  const size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct TensorPool::Blocks {
  std::mutex mutex;
  std::multimap<size_t, void*> waiting;
  size_t waiting_bytes = 0;

  ~Blocks() {
    for (const auto& [bytes, memory] : waiting) std::free(memory);
  }

  void* Take(size_t bytes) {
    {
      const std::lock_guard lock(mutex);
      if (const auto it = waiting.find(bytes); it != waiting.end()) {
        void* memory = it->second;
        waiting.erase(it);
        waiting_bytes -= bytes;
        return memory;
      }
    }
    void* memory = std::aligned_alloc(kAlignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }

  void Return(void* memory, size_t bytes) {
    const std::lock_guard lock(mutex);
    if (waiting_bytes + bytes > kMostWaiting) return std::free(memory);
    waiting.emplace(bytes, memory);
    waiting_bytes += bytes;
  }
};

TensorPool::TensorPool() : blocks_(std::make_shared<Blocks>()) {}

Tensor TensorPool::Take(const Shape& shape, DataType dtype) {
  const size_t bytes = CheckedBytes(shape, dtype).value_or(0);  // of what is too large, Empty says so
  if (bytes < kSmall) return Tensor::Empty(shape, dtype);
  const size_t rounded = Rounded(bytes);
  void* memory = blocks_->Take(rounded);
  std::shared_ptr<void> owner(memory, [blocks = blocks_, rounded](void* block) { blocks->Return(block, rounded); });
  return Tensor::View(shape, dtype, memory, std::move(owner));
}

}  // namespace collage::vm
