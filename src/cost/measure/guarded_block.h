// guarded_block.h: memory that notices accesses to what lies around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "collage/runtime/tensor.h"

namespace collage {

/// How a block lies within its pages.
enum class BlockPlacement : uint8_t {
  kLeastAligned,  ///< at an odd multiple of 64 bytes, which is the alignment that kernels may rely on
  kAtEnd,         ///< as close to the end of its last page as the alignment of 64 bytes allows
};

/// Some bytes of memory between pages that may not be touched. A read or write there, and a write while the block is
/// read-only, is noted, and the kernel goes on: memory is then opened. Reads of the few bytes between the block and the
/// end of its page, less than 128, are not noticed; writes are, by a pattern.
///
/// Accesses are noticed by a handler of SIGSEGV that is installed as long as a block exists; others' faults go where
/// they went before. Not thread-safe, but kernels may use blocks from any thread.
class GuardedBlock {
 public:
  GuardedBlock(size_t bytes, BlockPlacement placement);
  ~GuardedBlock();
  GuardedBlock(const GuardedBlock&) = delete;
  GuardedBlock& operator=(const GuardedBlock&) = delete;

  void* data() const { return data_; }
  size_t size() const { return bytes_; }
  /// Fills the block with a pattern that no right result has.
  void Poison();
  /// Makes the block read-only, or writable again.
  void SetReadOnly(bool is_read_only);
  /// "read behind", "wrote to", … ; empty if nothing was noticed.
  std::string Fault() const;

 private:
  size_t bytes_;
  size_t page_bytes_;  ///< bytes of the pages that hold the block
  std::byte* pages_ = nullptr;
  std::byte* data_ = nullptr;
  int place_ = -1;  ///< in the list that the handler reads
};

/// Byte of the pattern: as float32 -6.3e3, as int a large negative number.
inline constexpr unsigned char kPoison = 0xC5;
bool IsPoison(const void* begin, size_t count);

/// A tensor in `block`, which it keeps.
Tensor TensorIn(const std::shared_ptr<GuardedBlock>& block, const Shape& shape, DataType dtype);

}  // namespace collage
