// tensor_reader.h: tensors of ONNX files, inside the file or beside it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "collage/runtime/tensor.h"
#include "collage/support/string_numbers.h"

namespace onnx {
class TensorProto;
}

namespace collage {

class MappedFile;

/// The dtype of a TensorProto.DataType; nothing for types that Relay has none for (complex numbers, narrow types).
std::optional<DataType> OnnxDType(int onnx_type);
/// As OnnxDType; for narrow types the dtype of what holds their elements.
std::optional<DataType> StorageDType(int onnx_type);
/// "FLOAT8E4M3FN"; the number for unknown ones.
std::string OnnxDTypeName(int onnx_type);

/// Reads tensors of the model at `path`; files of external data are mapped once.
class TensorReader {
 public:
  explicit TensorReader(std::filesystem::path path) : path_(std::move(path)) {}
  /// Elements of narrow types are stored as narrow_types.h says. Throws kUnsupported for other element types that Relay
  /// does not have, kInput for data that does not fit the shape.
  Tensor Read(const onnx::TensorProto& proto) const;
  /// The numbers of all strings so far.
  StringNumbers& strings() const { return strings_; }

 private:
  Tensor ReadStrings(const onnx::TensorProto& proto, const Shape& shape, const std::string& where) const;
  Tensor ReadExternal(const onnx::TensorProto& proto, const Shape& shape, DataType dtype,
                      const std::string& where) const;
  Tensor ReadStored(const onnx::TensorProto& proto, const Shape& shape, DataType dtype, const std::string& where) const;

  std::filesystem::path path_;
  mutable std::map<std::string, std::shared_ptr<MappedFile>> external_;
  mutable StringNumbers strings_;
};

}  // namespace collage
