// tensors.cc: arrays of Python as tensors and back, by DLPack and the buffer protocol.
#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <optional>

#include "bindings.h"
#include "casters.h"
#include "collage/support/error.h"

namespace nb = nanobind;

namespace collage::python {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

DataType FromDLPack(nb::dlpack::dtype dtype, const std::string& name) {
  const auto bits = static_cast<int>(dtype.bits);
  switch (static_cast<nb::dlpack::dtype_code>(dtype.code)) {
    case nb::dlpack::dtype_code::Int: return DataType::Int(bits);
    case nb::dlpack::dtype_code::UInt: return DataType::UInt(bits);
    case nb::dlpack::dtype_code::Float: return DataType::Float(bits);
    case nb::dlpack::dtype_code::Bfloat: return DataType::BFloat16();
    case nb::dlpack::dtype_code::Bool: return DataType::Bool();
    default: break;
  }
  throw Error(ErrorCategory::kInput, fmt::format("arrays of dtype '{}' cannot be tensors", name));
}

nb::dlpack::dtype ToDLPack(DataType dtype) {
  using Code = nb::dlpack::dtype_code;
  Code code = Code::Float;
  switch (dtype.code) {
    case DataType::Code::kInt: code = Code::Int; break;
    case DataType::Code::kUInt: code = Code::UInt; break;
    case DataType::Code::kFloat: code = Code::Float; break;
    case DataType::Code::kBFloat: code = Code::UInt; break;  // NumPy knows it as an extension only
    case DataType::Code::kBool: code = Code::Bool; break;
  }
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(dtype.is_bool() ? 8 : dtype.bits), dtype.lanes};
}

std::string DTypeName(nb::handle array) {
  if (!nb::hasattr(array, "dtype")) return "";
  const nb::object dtype = array.attr("dtype");
  return nb::str(nb::handle(dtype)).c_str();
}

/// The dtype of a buffer's elements, by their format in the words of Python's module struct; nothing for most others.
std::optional<DataType> FromFormat(const char* format, Py_ssize_t size) {
  if (format == nullptr || format[0] == 0 || format[1] != 0) return std::nullopt;
  const auto bits = static_cast<int>(8 * size);
  if (std::strchr("bhilq", *format) != nullptr) return DataType::Int(bits);
  if (std::strchr("BHILQ", *format) != nullptr) return DataType::UInt(bits);
  if (std::strchr("efd", *format) != nullptr) return DataType::Float(bits);
  return *format == '?' ? std::optional(DataType::Bool()) : std::nullopt;
}

/// A tensor in the memory of a NumPy array of a usual dtype that is dense in C's order; nothing for whatever is none.
/// The way by DLPack takes ten times as long.
std::optional<Tensor> FromBuffer(nb::handle array) {
  if (PyObject_CheckBuffer(array.ptr()) == 0 || !nb::hasattr(array, "__dlpack__")) return std::nullopt;
  const auto release = [](Py_buffer* view) {  // the last owner may be any thread
    nb::gil_scoped_acquire gil;
    PyBuffer_Release(view);
    delete view;
  };
  const std::shared_ptr<Py_buffer> view(new Py_buffer(), release);
  if (PyObject_GetBuffer(array.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const std::optional<DataType> dtype = FromFormat(view->format, view->itemsize);
  if (!dtype) return std::nullopt;
  Shape shape(view->shape, view->shape + view->ndim);
  if (view->len == 0) return Tensor::Empty(std::move(shape), *dtype);
  return Tensor::View(std::move(shape), *dtype, view->buf, view);
}

}  // namespace

Tensor TensorFrom(nb::handle source) {
  if (std::optional<Tensor> tensor = FromBuffer(source)) return *std::move(tensor);
  nb::object array = nb::borrow(source);
  if (!nb::hasattr(array, "__dlpack__") && !nb::hasattr(array, "__array_interface__")) {
    array = nb::module_::import_("numpy").attr("asarray")(array);
  }
  const bool is_numpy = nb::hasattr(array, "view") && nb::hasattr(array, "astype");
  const std::string extension = is_numpy ? DTypeName(array) : "";
  const bool is_numpy_bfloat16 = extension == "bfloat16";
  if (is_numpy_bfloat16) array = array.attr("view")("uint16");
  // Narrow types take a byte an element: integers by their value, floats by their code.
  if (extension == "int2" || extension == "int4") array = array.attr("astype")("int8");
  if (extension == "uint2" || extension == "uint4") array = array.attr("astype")("uint8");
  if (extension.starts_with("float8_") || extension.starts_with("float4_")) array = array.attr("view")("uint8");
  AnyArray view;
  try {
    view = nb::cast<AnyArray>(array);
  } catch (const nb::cast_error&) {
    throw Error(ErrorCategory::kInput,
                fmt::format("'{}' of dtype '{}' is no array of numbers in the processor's memory",
                            nb::cast<std::string>(array.type().attr("__name__")), DTypeName(array)));
  }
  Shape shape;
  for (size_t axis = 0; axis < view.ndim(); ++axis) shape.push_back(static_cast<int64_t>(view.shape(axis)));
  const DataType dtype = is_numpy_bfloat16 ? DataType::BFloat16() : FromDLPack(view.dtype(), DTypeName(array));
  // The last owner may be any thread.
  std::shared_ptr<void> owner(new AnyArray(view), [](void* owned) {
    nb::gil_scoped_acquire gil;
    delete static_cast<AnyArray*>(owned);
  });
  if (view.data() == nullptr) return Tensor::Empty(std::move(shape), dtype);  // no elements
  return Tensor::View(std::move(shape), dtype, const_cast<void*>(view.data()), std::move(owner));
}

Tensor NumbersFrom(nb::handle source, StringNumbers& numbers) {
  const nb::object array = nb::module_::import_("numpy").attr("asarray")(source);
  const Tensor tensor = Tensor::Empty(nb::cast<std::vector<int64_t>>(array.attr("shape")), kInt64);
  int64_t next = 0;
  for (nb::handle element : nb::list(array.attr("ravel")().attr("tolist")())) {
    const bool is_bytes = nb::isinstance<nb::bytes>(element);
    if (!is_bytes && !nb::isinstance<nb::str>(element)) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("an array of strings is wanted, '{}' is one of dtype '{}'",
                              nb::cast<std::string>(source.type().attr("__name__")), DTypeName(array)));
    }
    const nb::object text = is_bytes ? element.attr("decode")("utf-8", "replace") : nb::borrow(element);
    tensor.data<int64_t>()[next++] = numbers.Add(nb::cast<std::string>(text));
  }
  return tensor;
}

nb::object TextsOf(const Tensor& tensor, const StringNumbers& numbers) {
  nb::list texts;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const std::string& text = numbers.TextOf(tensor.data<int64_t>()[i]);
    texts.append(nb::bytes(text.data(), text.size()).attr("decode")("utf-8", "replace"));
  }
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("array")(texts, numpy.attr("object_"));
  return array.attr("reshape")(nb::cast(tensor.shape()));
}

nb::object ToNumpy(const Tensor& tensor, bool writable) {
  std::vector<size_t> shape(tensor.shape().begin(), tensor.shape().end());
  const nb::capsule owner(new Tensor(tensor), [](void* owned) noexcept { delete static_cast<Tensor*>(owned); });
  nb::object array = nb::cast(
      nb::ndarray<nb::numpy>(tensor.raw(), shape.size(), shape.data(), owner, nullptr, ToDLPack(tensor.dtype())));
  if (!writable) array.attr("flags").attr("writeable") = false;
  if (tensor.dtype() == kBFloat16) array = array.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  return array;
}

}  // namespace collage::python
