// input_toggle.h: inputs that change between timed runs.
#pragma once

#include <cstddef>
#include <vector>

#include "collage/runtime/tensor.h"

namespace collage {

/// Changes inputs a little and back. A kernel that is timed on the same inputs again and again may remember what it
/// found; in use, every run has others. One element of each tensor takes the value of another one, so that it stays a
/// value that the function can mean.
class InputToggle {
 public:
  /// `inputs` share their elements with this. Empty tensors, and tensors of equal elements, never change.
  explicit InputToggle(const std::vector<Tensor>& inputs);

  /// Writes the other values, or those of before.
  void Set(bool is_changed);
  bool is_changed() const { return is_changed_; }

 private:
  struct Place {
    Tensor tensor;
    std::vector<std::byte> usual;
    std::vector<std::byte> other;
  };
  std::vector<Place> places_;
  bool is_changed_ = false;
};

}  // namespace collage
