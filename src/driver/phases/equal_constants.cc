// equal_constants.cc: compares constants of one size with each other.
#include "driver/phases/equal_constants.h"

#include <cstring>
#include <numeric>

namespace collage {

size_t EqualConstants::NumberOf(const Tensor& tensor) {
  const size_t size = tensor.size_bytes();
  const char* bytes = tensor.data<char>();
  std::vector<std::pair<Tensor, size_t>>& of_size = by_size_[size];
  for (const auto& [known, number] : of_size) {
    if (known.data<char>() == bytes || std::memcmp(known.data<char>(), bytes, size) == 0) return number;
  }
  bytes_.push_back(static_cast<int64_t>(size));
  return of_size.emplace_back(tensor, bytes_.size() - 1).second;
}

int64_t EqualConstants::SumOfBytes() const { return std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0}); }

}  // namespace collage
