// input_toggle.cc: the first element of each tensor, and one that differs from it.
#include "cost/measure/input_toggle.h"

#include <cstring>

namespace collage {

InputToggle::InputToggle(const std::vector<Tensor>& inputs) {
  for (const Tensor& tensor : inputs) {
    const size_t bytes = tensor.dtype().size_bytes();
    const auto* first = static_cast<const std::byte*>(tensor.raw());
    for (int64_t i = 1; i < tensor.num_elements(); ++i) {
      const std::byte* one = first + static_cast<size_t>(i) * bytes;
      if (std::memcmp(first, one, bytes) == 0) continue;
      places_.push_back({tensor, {first, first + bytes}, {one, one + bytes}});
      break;
    }
  }
}

void InputToggle::Set(bool is_changed) {
  if (is_changed == is_changed_) return;
  is_changed_ = is_changed;
  for (const Place& place : places_) {
    const std::vector<std::byte>& value = is_changed ? place.other : place.usual;
    std::memcpy(place.tensor.raw(), value.data(), value.size());
  }
}

}  // namespace collage
