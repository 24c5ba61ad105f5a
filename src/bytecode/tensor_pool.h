// tensor_pool.h: memory of results that is used again, since the system clears what it gives.
#pragma once

#include <cstddef>
#include <memory>

#include "collage/runtime/tensor.h"

namespace collage::vm {

/// Memory comes back when the last handle of a tensor goes, from whatever thread, and after the pool itself. Take is
/// not thread-safe.
class TensorPool {
 public:
  static constexpr size_t kAlignment = 64;  ///< its memory begins at multiples of it

  TensorPool();

  /// Uninitialised elements.
  Tensor Take(const Shape& shape, DataType dtype);

 private:
  struct Blocks;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace collage::vm
