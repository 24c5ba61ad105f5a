// tensor.cc: allocation, element access and conversion of host tensors.
#include "collage/runtime/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "collage/support/error.h"
#include "runtime/dispatch.h"
#include "support/numbers.h"

namespace collage {
namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<void> Allocate(size_t bytes) {
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;  // of at most 63 bits
  void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, std::free};
}

}  // namespace

int64_t NumElements(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

std::optional<size_t> CheckedBytes(std::span<const int64_t> shape, DataType dtype) {
  auto bytes = static_cast<int64_t>(dtype.size_bytes());
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return static_cast<size_t>(bytes);
}

std::string ToString(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

Tensor Tensor::Empty(Shape shape, DataType dtype) {
  if (!CheckedBytes(shape, dtype)) {
    throw Error(ErrorCategory::kResource, "no memory holds a tensor of shape " + collage::ToString(shape));
  }
  Tensor tensor;
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = dtype;
  tensor.owner_ = Allocate(tensor.size_bytes());
  tensor.data_ = tensor.owner_.get();
  return tensor;
}

Tensor Tensor::Zeros(Shape shape, DataType dtype) {
  Tensor tensor = Empty(std::move(shape), dtype);
  std::memset(tensor.data_, 0, tensor.size_bytes());
  return tensor;
}

Tensor Tensor::View(Shape shape, DataType dtype, void* data, std::shared_ptr<void> owner) {
  Tensor tensor;
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = dtype;
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::Reshaped(Shape shape) const {
  COLLAGE_CHECK(NumElements(shape) == num_elements())
      << "cannot view " << collage::ToString(shape_) << " as " << collage::ToString(shape);
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Tensor Tensor::Clone() const {
  Tensor result = Empty(shape_, dtype_);
  std::memcpy(result.data_, data_, size_bytes());
  return result;
}

void Tensor::CopyElements(const Tensor& target, const void* source, size_t count, size_t element_bytes) {
  COLLAGE_CHECK(static_cast<int64_t>(count) == target.num_elements())
      << count << " values for " << collage::ToString(target.shape_);
  COLLAGE_CHECK(element_bytes == target.dtype_.size_bytes()) << "values are not of dtype " << target.dtype_.ToString();
  std::memcpy(target.data_, source, count * element_bytes);
}

double Tensor::At(int64_t index) const {
  return DispatchType(dtype_, [&]<typename T>() { return ToDouble(data<T>()[index]); });
}

void Tensor::Set(int64_t index, double value) const {
  DispatchType(dtype_, [&]<typename T>() { data<T>()[index] = FromDouble<T>(value); });
}

std::vector<int64_t> Tensor::ToInts() const {
  if (dtype_.is_floating()) {
    throw Error(ErrorCategory::kInput, "expected integers, got a tensor of " + dtype_.ToString());
  }
  std::vector<int64_t> result(static_cast<size_t>(num_elements()));
  DispatchType(dtype_, [&]<typename T>() {
    if constexpr (std::is_arithmetic_v<T>) {
      for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int64_t>(data<T>()[i]);
    } else {
      for (size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int64_t>(ToDouble(data<T>()[i]));
    }
  });
  return result;
}

Tensor Tensor::Cast(DataType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor result = Empty(shape_, dtype);
  const int64_t count = num_elements();
  DispatchType(dtype_, [&]<typename From>() {
    DispatchType(dtype, [&]<typename To>() {
      const From* source = data<From>();
      To* target = result.data<To>();
      for (int64_t i = 0; i < count; ++i) target[i] = ConvertElement<To>(source[i]);
    });
  });
  return result;
}

bool BitEqual(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.raw() == b.raw() || (a.defined() && b.defined() && std::memcmp(a.raw(), b.raw(), a.size_bytes()) == 0));
}

}  // namespace collage
