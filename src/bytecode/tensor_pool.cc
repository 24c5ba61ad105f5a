// tensor_pool.cc: blocks by size, sizes being rounded up so that lengths that grow step by step share them.
#include "bytecode/tensor_pool.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/huge_pages.h"

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

std::shared_ptr<void> Allocate(size_t bytes) {
  std::shared_ptr<void> memory;
  if (bytes >= kHugePage) {
    memory = AllocateHugePages(bytes);
  } else if (void* plain = std::aligned_alloc(TensorPool::kAlignment, bytes)) {
    memory.reset(plain, std::free);
  }
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

struct TensorPool::Blocks {
  std::mutex mutex;
  std::multimap<size_t, std::shared_ptr<void>> waiting;
  size_t waiting_bytes = 0;

  std::shared_ptr<void> Take(size_t bytes) {
    {
      const std::lock_guard lock(mutex);
      if (const auto it = waiting.find(bytes); it != waiting.end()) {
        std::shared_ptr<void> memory = std::move(it->second);
        waiting.erase(it);
        waiting_bytes -= bytes;
        return memory;
      }
    }
    return Allocate(bytes);
  }

  void Return(std::shared_ptr<void> memory, size_t bytes) {
    const std::lock_guard lock(mutex);
    if (waiting_bytes + bytes > kMostWaiting) return;
    waiting.emplace(bytes, std::move(memory));
    waiting_bytes += bytes;
  }
};

TensorPool::TensorPool() : blocks_(std::make_shared<Blocks>()) {}

Tensor TensorPool::Take(const Shape& shape, DataType dtype) {
  const size_t bytes = CheckedBytes(shape, dtype).value_or(0);  // of what is too large, Empty says so
  if (bytes < kSmall) return Tensor::Empty(shape, dtype);
  const size_t rounded = Rounded(bytes);
  std::shared_ptr<void> memory = blocks_->Take(rounded);
  void* begin = memory.get();
  std::shared_ptr<void> owner(begin, [blocks = blocks_, rounded, block = std::move(memory)](void*) mutable {
    blocks->Return(std::move(block), rounded);
  });
  return Tensor::View(shape, dtype, begin, std::move(owner));
}

}  // namespace collage::vm
