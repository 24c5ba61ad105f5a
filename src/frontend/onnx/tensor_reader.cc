// tensor_reader.cc: TensorProto → Tensor.
#include "frontend/onnx/tensor_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "collage/support/error.h"
#include "frontend/onnx/narrow_types.h"
#include "onnx/onnx-ml.pb.h"
#include "support/file.h"
#include "support/packed_bits.h"

namespace collage {

std::optional<DataType> OnnxDType(int onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT: return kFloat32;
    case onnx::TensorProto::DOUBLE: return kFloat64;
    case onnx::TensorProto::FLOAT16: return kFloat16;
    case onnx::TensorProto::BFLOAT16: return kBFloat16;
    case onnx::TensorProto::INT8: return kInt8;
    case onnx::TensorProto::INT16: return DataType::Int(16);
    case onnx::TensorProto::INT32: return kInt32;
    case onnx::TensorProto::INT64: return kInt64;
    case onnx::TensorProto::UINT8: return kUInt8;
    case onnx::TensorProto::UINT16: return DataType::UInt(16);
    case onnx::TensorProto::UINT32: return DataType::UInt(32);
    case onnx::TensorProto::UINT64: return DataType::UInt(64);
    case onnx::TensorProto::BOOL: return kBool;
    default: return std::nullopt;
  }
}

std::optional<DataType> StorageDType(int onnx_type) {
  const NarrowType* narrow = FindNarrowType(onnx_type);
  return narrow != nullptr ? narrow->storage() : OnnxDType(onnx_type);
}

std::string OnnxDTypeName(int onnx_type) {
  const std::string& name = onnx::TensorProto::DataType_Name(onnx_type);
  return name.empty() ? std::to_string(onnx_type) : name;
}

namespace {

template <typename Field, typename T>
void CopyField(const Field& field, const Tensor& tensor, const std::string& where) {
  if (field.size() != tensor.num_elements()) {
    throw Error(ErrorCategory::kInput, fmt::format("{} elements for shape {}", field.size(), ToString(tensor.shape())),
                where);
  }
  for (int i = 0; i < field.size(); ++i) tensor.data<T>()[i] = static_cast<T>(field[i]);
}

void ReadTyped(const onnx::TensorProto& proto, const Tensor& tensor, const std::string& where) {
  const DataType dtype = tensor.dtype();
  if (dtype == kFloat32) return CopyField<decltype(proto.float_data()), float>(proto.float_data(), tensor, where);
  if (dtype == kFloat64) return CopyField<decltype(proto.double_data()), double>(proto.double_data(), tensor, where);
  if (dtype == kInt64) return CopyField<decltype(proto.int64_data()), int64_t>(proto.int64_data(), tensor, where);
  if (dtype == kInt32) return CopyField<decltype(proto.int32_data()), int32_t>(proto.int32_data(), tensor, where);
  if (dtype == DataType::UInt(64))
    return CopyField<decltype(proto.uint64_data()), uint64_t>(proto.uint64_data(), tensor, where);
  if (dtype == DataType::UInt(32))
    return CopyField<decltype(proto.uint64_data()), uint32_t>(proto.uint64_data(), tensor, where);
  // The narrow types are stored one per int32; float16 and bfloat16 as their bits.
  if (dtype.size_bytes() == 1)
    return CopyField<decltype(proto.int32_data()), uint8_t>(proto.int32_data(), tensor, where);
  CopyField<decltype(proto.int32_data()), uint16_t>(proto.int32_data(), tensor, where);
}

/// The elements that `packed` holds several of in a byte, the first one in the lowest bits.
Tensor Unpacked(const Tensor& packed, const NarrowType& type, const Shape& shape) {
  const Tensor result = Tensor::Empty(shape, type.storage());
  const int sign = type.is_signed ? 1 << (type.bits - 1) : 0;
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const int code = PackedNumber(packed.data<uint8_t>(), i, type.bits);
    result.data<uint8_t>()[i] = static_cast<uint8_t>((code ^ sign) - sign);
  }
  return result;
}

}  // namespace

Tensor TensorReader::ReadExternal(const onnx::TensorProto& proto, const Shape& shape, DataType dtype,
                                  const std::string& where) const {
  std::string location;
  uint64_t offset = 0;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset") continue;
    const std::string& text = entry.value();
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), offset);
    if (status != std::errc() || end != text.data() + text.size()) {
      throw Error(ErrorCategory::kInput, fmt::format("'{}' is no offset", text), where);
    }
  }
  const std::filesystem::path relative = std::filesystem::path(location).lexically_normal();
  if (relative.empty() || relative.is_absolute() || *relative.begin() == "..") {
    throw Error(ErrorCategory::kInput, fmt::format("external data '{}' is not in the model's folder", location), where);
  }
  std::shared_ptr<MappedFile>& file = external_[location];
  if (!file) file = MappedFile::Open(path_.parent_path() / relative);
  const uint64_t bytes = *CheckedBytes(shape, dtype);
  if (offset > file->bytes().size() || bytes > file->bytes().size() - offset) {
    throw Error(ErrorCategory::kInput, fmt::format("external data file '{}' is too short", location), where);
  }
  if (offset % 64 == 0) return Tensor::View(shape, dtype, file->bytes().data() + offset, file);
  Tensor tensor = Tensor::Empty(shape, dtype);
  std::memcpy(tensor.raw(), file->bytes().data() + offset, bytes);
  return tensor;
}

Tensor TensorReader::Read(const onnx::TensorProto& proto) const {
  const std::string where = fmt::format("{}: tensor '{}'", path_.string(), proto.name());
  const std::optional<DataType> dtype = StorageDType(proto.data_type());
  if (!dtype) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("element type {} is not supported", OnnxDTypeName(proto.data_type())), where);
  }
  const Shape shape(proto.dims().begin(), proto.dims().end());
  if (!CheckedBytes(shape, *dtype))
    throw Error(ErrorCategory::kInput, fmt::format("no tensor can have the shape {}", ToString(shape)), where);
  const NarrowType* narrow = FindNarrowType(proto.data_type());
  if (narrow != nullptr && narrow->is_text) return ReadStrings(proto, shape, where);
  if (narrow == nullptr || narrow->bits == 8) return ReadStored(proto, shape, *dtype, where);
  const int64_t per_byte = 8 / narrow->bits;
  const int64_t elements = NumElements(shape);
  const int64_t bytes = elements / per_byte + (elements % per_byte != 0 ? 1 : 0);
  return Unpacked(ReadStored(proto, {bytes}, kUInt8, where), *narrow, shape);
}

Tensor TensorReader::ReadStrings(const onnx::TensorProto& proto, const Shape& shape, const std::string& where) const {
  if (proto.string_data_size() != NumElements(shape)) {
    throw Error(ErrorCategory::kInput,
                fmt::format("{} elements for shape {}", proto.string_data_size(), ToString(shape)), where);
  }
  const Tensor numbers = Tensor::Empty(shape, kInt64);
  for (int i = 0; i < proto.string_data_size(); ++i) numbers.data<int64_t>()[i] = strings_.Add(proto.string_data(i));
  return numbers;
}

Tensor TensorReader::ReadStored(const onnx::TensorProto& proto, const Shape& shape, DataType dtype,
                                const std::string& where) const {
  const std::optional<size_t> bytes = CheckedBytes(shape, dtype);
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) return ReadExternal(proto, shape, dtype, where);
  if (proto.has_raw_data()) {
    if (proto.raw_data().size() != *bytes) {
      throw Error(
          ErrorCategory::kInput,
          fmt::format("{} bytes of data for a {} {}", proto.raw_data().size(), dtype.ToString(), ToString(shape)),
          where);
    }
    Tensor tensor = Tensor::Empty(shape, dtype);
    if (*bytes > 0) std::memcpy(tensor.raw(), proto.raw_data().data(), *bytes);
    return tensor;
  }
  // A file holds at least one byte per element: larger shapes are not believed.
  if (*bytes > 16 * proto.ByteSizeLong()) {
    throw Error(ErrorCategory::kInput, fmt::format("too few elements for shape {}", ToString(shape)), where);
  }
  Tensor tensor = Tensor::Zeros(shape, dtype);
  ReadTyped(proto, tensor, where);
  return tensor;
}

}  // namespace collage
