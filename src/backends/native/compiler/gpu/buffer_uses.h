// buffer_uses.h: the buffers that a function of a kernel reads and writes.
#pragma once

#include <cstdint>
#include <set>

namespace llvm {
class Function;
class Value;
}  // namespace llvm

namespace collage::native {

/// Buffers by their places in the kernel's array of addresses, which is the function's first argument.
class BufferUses {
 public:
  explicit BufferUses(llvm::Function& function);

  /// Whether the function also reads the memory that it stores to at `pointer`, as far as that is known.
  bool IsShared(const llvm::Value* pointer) const;

 private:
  static constexpr int64_t kAnywhere = -1;

  bool IsSlot(const llvm::Value* pointer) const;
  int64_t SlotOf(const llvm::Value* pointer) const;

  const llvm::Value* context_;
  std::set<int64_t> stored_, loaded_;
};

}  // namespace collage::native
