// model_file.h: small ONNX models for tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collage/runtime/tensor.h"
#include "onnx/onnx-ml.pb.h"

namespace collage {

/// A model built node by node and written to the temporary folder, where it lives as long as this object.
class ModelFile {
 public:
  explicit ModelFile(int opset);
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  /// An input; a size of -1 is open.
  ModelFile& Input(const std::string& name, onnx::TensorProto::DataType type, const Shape& shape);
  /// An input whose dimensions are written: a number is a size, "?" one without a name, all others are symbols.
  ModelFile& SymbolicInput(const std::string& name, onnx::TensorProto::DataType type,
                           const std::vector<std::string>& dims);
  ModelFile& Output(const std::string& name);
  /// An initializer of float32, int32, int64, int8, uint8 or bool.
  ModelFile& Initializer(const std::string& name, const Tensor& value);
  /// A node, for attributes to be added to.
  onnx::NodeProto& Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = "");
  /// As changed up to now.
  std::filesystem::path Write() const;

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  onnx::ModelProto& model() { return model_; }

 private:
  onnx::ModelProto model_;
  std::filesystem::path path_;
};

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value);
void SetFloat(onnx::NodeProto& node, const std::string& name, float value);
void SetString(onnx::NodeProto& node, const std::string& name, const std::string& value);
void SetInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values);
/// An empty graph that becomes the attribute `name`.
onnx::GraphProto& AddGraph(onnx::NodeProto& node, const std::string& name);
/// A tensor of what initializers may be of.
void SetTensor(onnx::NodeProto& node, const std::string& name, const Tensor& value);

}  // namespace collage
