// packed_weights.h: constants in the formats that primitives read, shared by all kernels of the process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "backends/dnnl/primitive/build.h"
#include "collage/runtime/tensor.h"

namespace collage::dnnl_toolchain {

/// Packed weights by their unpacked address and both formats; the last kernel that uses some frees them. An address
/// stays valid while a kernel that was loaded from it lives, so a live entry cannot be of other weights. Thread-safe.
class PackedWeights {
 public:
  /// The constant of `binding` as its primitive reads it. Integers with a zero point that become signed bytes lose it;
  /// those that become floats are dequantised.
  std::shared_ptr<dnnl::memory> Get(const Binding& binding, std::span<const Tensor> constants);

  static PackedWeights& OfProcess();

 private:
  struct Entry {
    Binding binding;
    const void* scales;
    std::weak_ptr<dnnl::memory> packed;
  };

  std::mutex mutex_;
  std::multimap<const void*, Entry> entries_;
};

}  // namespace collage::dnnl_toolchain
