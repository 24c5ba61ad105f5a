// on_device.h: operands of a kernel in the memory of its device.
#pragma once

#include <algorithm>
#include <vector>

#include "collage/runtime/device.h"

namespace collage::conformance {

/// Copies of the host's memory on a device; the host's itself where that is the device.
class OnDevice {
 public:
  explicit OnDevice(Memory memory) : memory_(memory) {}

  /// Returns the address at which a kernel finds these bytes.
  void* Place(void* host, size_t bytes) {
    if (memory_ == Memory::kHost) return host;
    const DeviceBuffer& buffer = buffers_.emplace_back(memory_, std::max<size_t>(bytes, 1));
    buffer.device().CopyIn(buffer.address(), host, bytes);
    return buffer.address();
  }
  /// Brings back what a kernel has left at `address`, which Place gave.
  void Fetch(void* host, const void* address, size_t bytes) const {
    if (memory_ != Memory::kHost) GetDevice(memory_).CopyOut(host, address, bytes);
  }

 private:
  Memory memory_;
  std::vector<DeviceBuffer> buffers_;
};

}  // namespace collage::conformance
