// model_file.cc: ONNX's protobuf messages, filled in.
#include "unit/frontend/model_file.h"

#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace collage {

namespace {

onnx::TensorProto::DataType OnnxType(DataType dtype) {
  if (dtype == kFloat32) return onnx::TensorProto::FLOAT;
  if (dtype == kInt32) return onnx::TensorProto::INT32;
  if (dtype == kInt64) return onnx::TensorProto::INT64;
  if (dtype == kInt8) return onnx::TensorProto::INT8;
  if (dtype == kUInt8) return onnx::TensorProto::UINT8;
  if (dtype == kBool) return onnx::TensorProto::BOOL;
  throw std::invalid_argument("no initializers of " + dtype.ToString());
}

void Fill(onnx::TensorProto& tensor, const Tensor& value) {
  tensor.set_data_type(OnnxType(value.dtype()));
  for (int64_t size : value.shape()) tensor.add_dims(size);
  tensor.set_raw_data(value.raw(), value.size_bytes());
}

onnx::AttributeProto& Attribute(onnx::NodeProto& node, const std::string& name,
                                onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

}  // namespace

ModelFile::ModelFile(int opset) {
  static int count = 0;
  path_ = std::filesystem::temp_directory_path() /
          ("collage_model_" + std::to_string(getpid()) + "_" + std::to_string(count++) + ".onnx");
  model_.set_ir_version(8);
  model_.add_opset_import()->set_version(opset);
  graph().set_name("test");
}

ModelFile::~ModelFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

ModelFile& ModelFile::Input(const std::string& name, onnx::TensorProto::DataType type, const Shape& shape) {
  onnx::ValueInfoProto& input = *graph().add_input();
  input.set_name(name);
  onnx::TypeProto::Tensor& tensor = *input.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (int64_t size : shape) {
    onnx::TensorShapeProto::Dimension& dim = *tensor.mutable_shape()->add_dim();
    if (size >= 0) dim.set_dim_value(size);
  }
  return *this;
}

ModelFile& ModelFile::SymbolicInput(const std::string& name, onnx::TensorProto::DataType type,
                                    const std::vector<std::string>& dims) {
  Input(name, type, {});
  onnx::TensorShapeProto& shape =
      *graph().mutable_input()->rbegin()->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::string& text : dims) {
    onnx::TensorShapeProto::Dimension& dim = *shape.add_dim();
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) {
      dim.set_dim_value(std::stoll(text));
    } else if (text != "?") {
      dim.set_dim_param(text);
    }
  }
  return *this;
}

ModelFile& ModelFile::Output(const std::string& name) {
  graph().add_output()->set_name(name);
  return *this;
}

ModelFile& ModelFile::Initializer(const std::string& name, const Tensor& value) {
  onnx::TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(name);
  Fill(tensor, value);
  return *this;
}

onnx::NodeProto& ModelFile::Node(const std::string& op, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs, const std::string& name) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(op);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

std::filesystem::path ModelFile::Write() const {
  std::ofstream file(path_, std::ios::binary);
  if (!model_.SerializeToOstream(&file)) throw std::runtime_error("cannot write " + path_.string());
  return path_;
}

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  Attribute(node, name, onnx::AttributeProto::INT).set_i(value);
}

void SetFloat(onnx::NodeProto& node, const std::string& name, float value) {
  Attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
}

void SetString(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  Attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
}

void SetInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = Attribute(node, name, onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

onnx::GraphProto& AddGraph(onnx::NodeProto& node, const std::string& name) {
  onnx::GraphProto& graph = *Attribute(node, name, onnx::AttributeProto::GRAPH).mutable_g();
  graph.set_name(name);
  return graph;
}

void SetTensor(onnx::NodeProto& node, const std::string& name, const Tensor& value) {
  Fill(*Attribute(node, name, onnx::AttributeProto::TENSOR).mutable_t(), value);
}

}  // namespace collage
