// tensor.h: dense host tensors in row-major order, what constants, inputs and outputs are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/runtime/data_type.h"

namespace collage {

/// Sizes of the dimensions, outermost first. A rank-0 shape is a scalar.
using Shape = std::vector<int64_t>;

/// Product of the dimensions; 1 for a scalar.
int64_t NumElements(std::span<const int64_t> shape);

/// Bytes of a dense tensor, for shapes from files: nothing when a dimension is negative or the product does not fit 63
/// bits.
std::optional<size_t> CheckedBytes(std::span<const int64_t> shape, DataType dtype);

/// "(1, 3, 224, 224)"; "()" for a scalar.
std::string ToString(const Shape& shape);

/// A dense, row-major tensor in host memory, 64-byte aligned when allocated here.
///
/// A handle: copies share the elements. The elements of a tensor that has become a constant of the IR must not be
/// written any more. Default-constructed handles are empty (`!defined()`).
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised elements.
  static Tensor Empty(Shape shape, DataType dtype);
  static Tensor Zeros(Shape shape, DataType dtype);
  /// Wraps memory that `owner` keeps alive, such as a mapped file. `data` holds NumElements(shape) elements.
  static Tensor View(Shape shape, DataType dtype, void* data, std::shared_ptr<void> owner);

  /// Copies `values`, whose type must be the one that `dtype` names (float for float32, bool as uint8_t).
  template <typename T>
  static Tensor Of(Shape shape, DataType dtype, std::span<const T> values) {
    Tensor result = Empty(std::move(shape), dtype);
    CopyElements(result, values.data(), values.size(), sizeof(T));
    return result;
  }

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  DataType dtype() const { return dtype_; }
  int64_t num_elements() const { return NumElements(shape_); }
  size_t size_bytes() const { return static_cast<size_t>(num_elements()) * dtype_.size_bytes(); }

  void* raw() const { return data_; }
  /// Elements as `T`; the caller answers for `T` matching the dtype.
  template <typename T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  template <typename T>
  std::span<T> span() const {
    return {data<T>(), static_cast<size_t>(num_elements())};
  }

  /// Returns the same elements under another shape of equal size.
  Tensor Reshaped(Shape shape) const;
  /// An independent copy.
  Tensor Clone() const;
  /// Element `index` (row-major) converted to double; any dtype.
  double At(int64_t index) const;
  /// Stores `value` converted to the dtype (rounded to nearest even for floats, truncated for integers).
  void Set(int64_t index, double value) const;
  /// Elements as int64, from any integer or bool dtype; throws kInput for floats.
  std::vector<int64_t> ToInts() const;
  /// An element-wise converted copy (C++ conversion rules; float to integer truncates, to bool tests for non-zero).
  Tensor Cast(DataType dtype) const;

 private:
  static void CopyElements(const Tensor& target, const void* source, size_t count, size_t element_bytes);

  Shape shape_;
  DataType dtype_;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// Same dtype, shape and bytes.
bool BitEqual(const Tensor& a, const Tensor& b);

}  // namespace collage
