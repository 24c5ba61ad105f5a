// weight_memory.h: memory for what kernels read in every run: weights, as the model has them or packed.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "collage/runtime/tensor.h"

namespace collage {

/// At least `bytes` of memory, 64-byte aligned, not zeroed, in huge pages where the system gives them. Pieces lie
/// behind each other, so that weights of many kernels share pages: a run that streams hundreds of megabytes through the
/// cache meets few misses of the address translation, and equal executables meet equal conflicts in the cache. Freed
/// when the last piece of a page goes. Thread-safe. Throws kResource when there is none.
std::shared_ptr<void> AllocateWeights(size_t bytes);

/// Copies of constants in such memory, shared by all kernels that are made of the same one. Thread-safe.
class ResidentConstants {
 public:
  /// Copies of `constants`; pages of the originals in a mapped file are released. A copy is known by the address of its
  /// original, which must live as long as the copy does.
  std::vector<Tensor> Get(std::span<const Tensor> constants);

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::weak_ptr<void>> copies_;
};

}  // namespace collage
