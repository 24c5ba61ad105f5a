// weight_memory.cc: blocks of huge pages, filled piece by piece.
#include "runtime/weight_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "collage/support/error.h"
#include "runtime/huge_pages.h"
#include "support/file.h"

namespace collage {
namespace {

constexpr size_t kAlignment = 64;
// Pages of a block that are never written take up no memory, so blocks are much larger than most weights, and little is
// wasted at their ends.
constexpr size_t kBlock = size_t{64} << 20;

size_t RoundedUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Hands out pieces of the newest block, and opens another when a piece is larger than what it has left.
class BlockAllocator {
 public:
  std::shared_ptr<void> Allocate(size_t bytes) {
    const size_t rounded = RoundedUp(std::max<size_t>(bytes, 1), kAlignment);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<std::byte> block = block_.lock();
    if (!block || rounded > size_ - used_) {
      block = Open(RoundedUp(std::max(rounded, kBlock), kHugePage));
      block_ = block;
    }
    // Counted by itself: a weak reference to a piece must see it gone although others keep the block.
    std::shared_ptr<void> piece(block.get() + used_, [block](void*) mutable { block.reset(); });
    used_ += rounded;
    return piece;
  }

 private:
  std::shared_ptr<std::byte> Open(size_t bytes) {
    std::shared_ptr<std::byte> memory = AllocateHugePages(bytes);
    if (!memory) throw Error(ErrorCategory::kResource, fmt::format("cannot allocate {} bytes for weights", bytes));
    size_ = bytes;
    used_ = 0;
    return memory;
  }

  std::mutex mutex_;
  std::weak_ptr<std::byte> block_;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace

std::shared_ptr<void> AllocateWeights(size_t bytes) {
  static BlockAllocator allocator;
  return allocator.Allocate(bytes);
}

std::vector<Tensor> ResidentConstants::Get(std::span<const Tensor> constants) {
  const std::lock_guard lock(mutex_);
  std::vector<Tensor> result;
  for (const Tensor& constant : constants) {
    std::weak_ptr<void>& known = copies_[constant.raw()];
    std::shared_ptr<void> copy = known.lock();
    if (!copy) {
      copy = AllocateWeights(constant.size_bytes());
      std::memcpy(copy.get(), constant.raw(), constant.size_bytes());
      MappedFile::Release(constant.raw(), constant.size_bytes());
      known = copy;
    }
    result.push_back(Tensor::View(constant.shape(), constant.dtype(), copy.get(), copy));
  }
  std::erase_if(copies_, [](const auto& entry) { return entry.second.expired(); });
  return result;
}

}  // namespace collage
