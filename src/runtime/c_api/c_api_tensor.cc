// c_api_tensor.cc: buffers and DLPack tensors of C callers, checked before anything reads or writes them.
#include "runtime/c_api/c_api_tensor.h"

#include <fmt/format.h>

#include <cstddef>

#include "collage/support/error.h"

// DLPack's structs on machines with 64-bit pointers: https://dmlc.github.io/dlpack/latest/c_api.html
static_assert(sizeof(collage_dtype) == 4 && sizeof(collage_device) == 8 && sizeof(collage_tensor) == 48);
static_assert(offsetof(collage_tensor, device) == 8 && offsetof(collage_tensor, ndim) == 16 &&
              offsetof(collage_tensor, dtype) == 20 && offsetof(collage_tensor, shape) == 24 &&
              offsetof(collage_tensor, strides) == 32 && offsetof(collage_tensor, byte_offset) == 40);

namespace collage {
namespace {

[[noreturn]] void Refuse(const std::string& message, const std::string& hint = "") {
  throw Error(ErrorCategory::kInput, message, "", hint);
}

DataType FromC(collage_dtype dtype, const std::string& what) {
  const int bits = dtype.bits;
  DataType result;
  bool is_known = true;
  switch (dtype.code) {
    case COLLAGE_DTYPE_INT: result = DataType::Int(bits); break;
    case COLLAGE_DTYPE_UINT: result = DataType::UInt(bits); break;
    case COLLAGE_DTYPE_FLOAT: result = DataType::Float(bits); break;
    case COLLAGE_DTYPE_BFLOAT:
      result = DataType::BFloat16();
      is_known = bits == 16;
      break;
    case COLLAGE_DTYPE_BOOL:
      result = DataType::Bool();
      is_known = bits == 8;
      break;
    default: is_known = false;
  }
  result.lanes = dtype.lanes;
  if (!is_known || !DataType::IsName(result.ToString())) {
    Refuse(fmt::format("{}: there is no dtype of code {}, {} bits and {} lanes", what, dtype.code, bits, dtype.lanes));
  }
  return result;
}

Shape ShapeOf(const collage_tensor& tensor, const std::string& what) {
  if (tensor.ndim < 0) Refuse(fmt::format("{}: a tensor of {} dimensions", what, tensor.ndim));
  if (tensor.ndim > 0 && tensor.shape == nullptr) Refuse(what + ": the tensor's shape is null");
  Shape shape;
  if (tensor.ndim > 0) shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  return shape;
}

/// Strides of dimensions of size one do not matter, nor do any of a tensor without elements.
bool IsDense(const Shape& shape, const int64_t* strides) {
  int64_t dense = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != dense) return false;
    dense *= shape[axis];
  }
  return true;
}

void CheckAligned(const void* data, const std::string& what) {
  if (reinterpret_cast<uintptr_t>(data) % COLLAGE_ALIGNMENT == 0) return;
  Refuse(fmt::format("{}: the memory is not {}-byte aligned", what, COLLAGE_ALIGNMENT),
         "allocate it with aligned_alloc, or have it copied");
}

}  // namespace

collage_dtype ToC(DataType dtype) {
  uint8_t code = COLLAGE_DTYPE_FLOAT;
  switch (dtype.code) {
    case DataType::Code::kInt: code = COLLAGE_DTYPE_INT; break;
    case DataType::Code::kUInt: code = COLLAGE_DTYPE_UINT; break;
    case DataType::Code::kFloat: code = COLLAGE_DTYPE_FLOAT; break;
    case DataType::Code::kBFloat: code = COLLAGE_DTYPE_BFLOAT; break;
    case DataType::Code::kBool: code = COLLAGE_DTYPE_BOOL; break;
  }
  return {code, static_cast<uint8_t>(dtype.is_bool() ? 8 : dtype.bits), dtype.lanes};
}

Tensor ViewOf(const collage_tensor* tensor, const std::string& what) {
  if (tensor == nullptr) Refuse(what + ": the tensor is null");
  if (tensor->device.device_type != COLLAGE_DEVICE_CPU) {
    Refuse(fmt::format("{}: the tensor is on a device of type {}, not in the processor's memory", what,
                       static_cast<int>(tensor->device.device_type)));
  }
  const DataType dtype = FromC(tensor->dtype, what);
  Shape shape = ShapeOf(*tensor, what);
  const std::optional<size_t> bytes = CheckedBytes(shape, dtype);
  if (!bytes) Refuse(fmt::format("{}: a tensor of shape {}", what, ToString(shape)));
  if (*bytes == 0) return Tensor::Empty(std::move(shape), dtype);
  if (tensor->strides != nullptr && !IsDense(shape, tensor->strides)) {
    Refuse(what + ": the tensor is not dense and row-major", "copy it first");
  }
  if (tensor->data == nullptr) Refuse(what + ": the tensor's data is null");
  std::byte* data = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  CheckAligned(data, what);
  return Tensor::View(std::move(shape), dtype, data, nullptr);
}

void CheckBuffer(const void* data, size_t size_bytes, const PortInfo& port, const std::string& what) {
  const size_t wanted = CheckedBytes(port.shape, port.dtype).value_or(0);
  if (size_bytes != wanted) {
    Refuse(fmt::format("{} takes {} bytes ({} {}), got {}", what, wanted, port.dtype.ToString(), ToString(port.shape),
                       size_bytes));
  }
  if (data == nullptr && wanted > 0) Refuse(what + ": the data is null");
}

Tensor ViewOf(void* data, size_t size_bytes, const PortInfo& port, const std::string& what) {
  CheckBuffer(data, size_bytes, port, what);
  if (size_bytes == 0) return Tensor::Empty(port.shape, port.dtype);
  CheckAligned(data, what);
  return Tensor::View(port.shape, port.dtype, data, nullptr);
}

}  // namespace collage
