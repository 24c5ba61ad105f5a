// guarded_result.h: memory for a result of a kernel, and behind it bytes that the kernel must leave alone.
#pragma once

#include <algorithm>
#include <cstring>

#include "collage/runtime/tensor.h"

namespace collage::conformance {

class GuardedResult {
 public:
  explicit GuardedResult(const Tensor& like)
      : shape_(like.shape()),
        dtype_(like.dtype()),
        size_(like.size_bytes()),
        bytes_(Tensor::Empty({static_cast<int64_t>(size_ + kGuardBytes)}, kUInt8)) {
    std::fill_n(bytes_.data<uint8_t>(), size_ + kGuardBytes, kPoison);
  }

  void* raw() { return bytes_.raw(); }
  size_t guarded_bytes() const { return size_ + kGuardBytes; }

  bool IsGuardIntact() const {
    const uint8_t* guard = bytes_.data<uint8_t>() + size_;
    return std::all_of(guard, guard + kGuardBytes, [](uint8_t byte) { return byte == kPoison; });
  }

  /// Returns the bytes that the kernel wrote.
  Tensor Written() const {
    Tensor result = Tensor::Empty(shape_, dtype_);
    if (size_ > 0) std::memcpy(result.raw(), bytes_.raw(), size_);
    return result;
  }

 private:
  static constexpr size_t kGuardBytes = 64;
  static constexpr uint8_t kPoison = 0x5a;

  Shape shape_;
  DataType dtype_;
  size_t size_;
  Tensor bytes_;
};

}  // namespace collage::conformance
