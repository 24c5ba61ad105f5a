// blob.h: a partition as the kernel loader reads it: an ONNX model, and what is bound to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace collage::onnxruntime {

/// An input or an output of the model.
struct Port {
  std::string name;
  std::vector<int64_t> shape;  ///< symbolic sizes are -1
  int element_type = 0;        ///< TensorProto.DataType, which is ONNXTensorElementDataType, too
  size_t bytes = 0;            ///< all elements; one element where sizes are symbolic

  bool is_symbolic() const;
  bool operator==(const Port&) const = default;
};

struct Description {
  std::string library;  ///< its path at compile time; may be empty
  std::string version;  ///< the library's
  std::vector<Port> inputs;
  std::vector<Port> outputs;

  bool operator==(const Description&) const = default;
};

/// The bytes: the length of a text (8 bytes, little endian), the text, which is `description` as JSON, and `model`.
std::vector<std::byte> ToBlob(const Description& description, const std::string& model);

/// A blob's parts; `model` lies in the blob.
struct BlobParts {
  Description description;
  std::span<const std::byte> model;
};
/// Throws kCorrupt where `blob` is none.
BlobParts ReadBlob(std::span<const std::byte> blob);

}  // namespace collage::onnxruntime
