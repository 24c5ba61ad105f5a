// equal_constants.h: which constants of a model are equal, by their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collage/runtime/tensor.h"

namespace collage {

/// Numbers constants: those with equal bytes have the same number, from 0 in the order of the first calls.
class EqualConstants {
 public:
  size_t NumberOf(const Tensor& tensor);
  /// Bytes of a constant by its number.
  int64_t BytesOf(size_t number) const { return bytes_[number]; }
  /// Bytes of all that differ.
  int64_t SumOfBytes() const;

 private:
  std::map<size_t, std::vector<std::pair<Tensor, size_t>>> by_size_;  ///< with their numbers
  std::vector<int64_t> bytes_;
};

}  // namespace collage
