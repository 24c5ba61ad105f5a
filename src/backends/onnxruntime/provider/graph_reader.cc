// graph_reader.cc: nodes, attributes, types and tensors, one by one.
#include "backends/onnxruntime/provider/graph_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "support/file.h"

namespace collage::onnxruntime {
namespace {

// Tensors of up to so many bytes are read for their values, as shapes and axes are.
constexpr size_t kMostInside = 1024;
// Weights begin at multiples of it, as external data that are mapped should.
constexpr int64_t kWeightAlignment = 4096;

/// TensorProto.DataType of strings, which have no bytes of their own.
constexpr int kStringElements = onnx::TensorProto::STRING;

/// The numbers in the bytes of an attribute.
template <typename T>
std::vector<T> Numbers(const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

/// Texts, each ended by a zero.
std::vector<std::string> Texts(const std::string& bytes) {
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < bytes.size();) {
    texts.emplace_back(bytes.c_str() + begin);
    begin += texts.back().size() + 1;
  }
  return texts;
}

}  // namespace

// ---- the table ----

ProviderApi::ProviderApi(const ApiBase& base) {
  for (const uint32_t version : {kVersionOfHasShape, kProviderApiVersion}) {
    api_ = base.get_api(version);
    version_ = version;
    if (api_ != nullptr) return;
  }
  throw Error(ErrorCategory::kUnavailable,
              fmt::format("ONNX Runtime {} is too old for execution providers from outside", base.version()), "",
              "version 1.23 is the first");
}

std::vector<const Node*> ProviderApi::NodesOf(const Graph* graph) const {
  return All<GraphGetNumNodes, GraphGetNodes, Node>(graph);
}

std::vector<const ValueInfo*> ProviderApi::InputsOf(const Node* node) const {
  return All<NodeGetNumInputs, NodeGetInputs, ValueInfo>(node);
}

std::vector<const ValueInfo*> ProviderApi::OutputsOf(const Node* node) const {
  return All<NodeGetNumOutputs, NodeGetOutputs, ValueInfo>(node);
}

std::string ProviderApi::NameOf(const ValueInfo* value) const {
  return value == nullptr ? "" : Text<GetValueInfoName>(value);
}

std::string ProviderApi::Bytes(const AttributeValue* attribute, AttributeType type) const {
  size_t needed = 0;
  Status* too_small = Call<ReadOpAttr>(attribute, type, static_cast<void*>(nullptr), size_t{0}, &needed);
  if (too_small != nullptr) Call<ReleaseStatus>(too_small);
  std::string bytes(needed, '\0');
  if (needed > 0) Ask<ReadOpAttr>(attribute, type, static_cast<void*>(bytes.data()), needed, &needed);
  return bytes;
}

Status* ProviderApi::ToStatus(const std::exception& error) const {
  const auto* ours = dynamic_cast<const Error*>(&error);
  const std::string text = ours != nullptr ? ours->Format() : error.what();
  return Call<CreateStatus>(kFail, text.c_str());
}

void ProviderApi::Log(const Logger* logger, int severity, const std::string& message) const {
  Status* status = Call<LogMessage>(logger, severity, message.c_str(), "collage", 0, "collage");
  if (status != nullptr) Call<ReleaseStatus>(status);
}

// ---- graphs ----

GraphReader::GraphReader(const ProviderApi& api, std::filesystem::path weights)
    : api_(api), weights_(std::move(weights)) {
  file_ = open(weights_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file_ < 0) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot be written: {}", std::strerror(errno)),
                weights_.string());
  }
}

GraphReader::~GraphReader() { close(file_); }

ReadGraph GraphReader::Read(const Graph* graph) {
  ReadGraph read;
  read.nodes = api_.NodesOf(graph);
  read.model.set_ir_version(onnx::IR_VERSION);
  size_t num_sets = 0;
  api_.Ask<GraphGetNumOperatorSets>(graph, &num_sets);
  std::vector<const char*> domains(num_sets);
  std::vector<int64_t> versions(num_sets);
  api_.Ask<GraphGetOperatorSets>(graph, domains.data(), versions.data(), num_sets);
  for (size_t i = 0; i < num_sets; ++i) {
    auto* set = read.model.add_opset_import();
    set->set_domain(domains[i]);
    set->set_version(versions[i]);
  }
  onnx::GraphProto& proto = *read.model.mutable_graph();
  proto.set_name("main");
  AddInitializers(graph, proto);
  for (size_t i = 0; i < read.nodes.size(); ++i) {
    try {
      AddNode(read.nodes[i], *proto.add_node());
    } catch (const Error& error) {
      if (error.category() != ErrorCategory::kUnsupported) throw;
      read.unreadable[static_cast<int>(i)] = error.message();
    }
    for (const ValueInfo* output : api_.OutputsOf(read.nodes[i])) {
      if (output != nullptr && !api_.NameOf(output).empty()) SetType(output, *proto.add_value_info());
    }
  }
  AddPorts(graph, proto);
  // Nodes that read what is no tensor, or of unknown rank, find nothing.
  auto& inputs = *proto.mutable_input();
  const auto has_no_shape = [](const auto& input) { return !input.type().tensor_type().has_shape(); };
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(), has_no_shape), inputs.end());
  read.weights = weights_;
  read.weights_digest = hasher_.Hex();
  return read;
}

void GraphReader::AddPorts(const Graph* graph, onnx::GraphProto& proto) const {
  for (const ValueInfo* input : api_.All<GraphGetNumInputs, GraphGetInputs, ValueInfo>(graph)) {
    SetType(input, *proto.add_input());
  }
  for (const ValueInfo* output : api_.All<GraphGetNumOutputs, GraphGetOutputs, ValueInfo>(graph)) {
    SetType(output, *proto.add_output());
  }
}

void GraphReader::AddGraph(const Graph* graph, onnx::GraphProto& proto) {
  proto.set_name("within");
  AddInitializers(graph, proto);
  for (const Node* node : api_.NodesOf(graph)) AddNode(node, *proto.add_node());
  AddPorts(graph, proto);
}

void GraphReader::AddInitializers(const Graph* graph, onnx::GraphProto& proto) {
  for (const ValueInfo* value : api_.All<GraphGetNumInitializers, GraphGetInitializers, ValueInfo>(graph)) {
    bool is_constant = false;
    api_.Ask<IsConstantInitializer>(value, &is_constant);
    if (!is_constant) continue;  // an input of the model, with a default
    const Value* tensor = nullptr;
    api_.Ask<GetInitializerValue>(value, &tensor);
    if (tensor == nullptr) continue;
    onnx::TensorProto& added = *proto.add_initializer();
    added.set_name(api_.NameOf(value));
    try {
      SetTensor(tensor, added);
    } catch (const Error& error) {
      if (error.category() != ErrorCategory::kUnsupported) throw;
      proto.mutable_initializer()->RemoveLast();  // nodes that read it find nothing
    }
  }
}

// ---- nodes ----

void GraphReader::AddNode(const Node* node, onnx::NodeProto& proto) {
  proto.set_name(api_.Text<NodeGetName>(node));
  proto.set_op_type(api_.Text<NodeGetOperatorType>(node));
  proto.set_domain(api_.Text<NodeGetDomain>(node));
  for (const ValueInfo* input : api_.InputsOf(node)) proto.add_input(api_.NameOf(input));
  for (const ValueInfo* output : api_.OutputsOf(node)) proto.add_output(api_.NameOf(output));
  AddAttributes(node, proto);
}

void GraphReader::AddAttributes(const Node* node, onnx::NodeProto& proto) {
  for (const auto* attribute : api_.All<NodeGetNumAttributes, NodeGetAttributes, AttributeValue>(node)) {
    AttributeType type = AttributeType::kUndefined;
    api_.Ask<GetAttributeType>(attribute, &type);
    if (type != AttributeType::kGraph) AddAttribute(attribute, type, *proto.add_attribute());
  }
  size_t count = 0;
  api_.Ask<NodeGetNumSubgraphs>(node, &count);
  if (count == 0) return;
  std::vector<const Graph*> graphs(count);
  std::vector<const char*> names(count);
  api_.Ask<NodeGetSubgraphs>(node, graphs.data(), count, names.data());
  for (size_t i = 0; i < count; ++i) {
    onnx::AttributeProto& added = *proto.add_attribute();
    added.set_name(names[i]);
    added.set_type(onnx::AttributeProto::GRAPH);
    AddGraph(graphs[i], *added.mutable_g());
  }
}

void GraphReader::AddAttribute(const AttributeValue* attribute, AttributeType type, onnx::AttributeProto& proto) {
  const std::string name = api_.Text<GetAttributeName>(attribute);
  proto.set_name(name);
  if (type == AttributeType::kTensor) {
    Value* tensor = nullptr;
    api_.Ask<GetTensorAttribute>(attribute, &tensor);
    proto.set_type(onnx::AttributeProto::TENSOR);
    SetTensor(tensor, *proto.mutable_t());
    api_.Call<ReleaseValue>(tensor);
    return;
  }
  const std::string bytes = api_.Bytes(attribute, type);
  switch (type) {
    case AttributeType::kInt:
      proto.set_type(onnx::AttributeProto::INT);
      proto.set_i(Numbers<int64_t>(bytes).at(0));
      break;
    case AttributeType::kInts:
      proto.set_type(onnx::AttributeProto::INTS);
      for (const int64_t number : Numbers<int64_t>(bytes)) proto.add_ints(number);
      break;
    case AttributeType::kFloat:
      proto.set_type(onnx::AttributeProto::FLOAT);
      proto.set_f(Numbers<float>(bytes).at(0));
      break;
    case AttributeType::kFloats:
      proto.set_type(onnx::AttributeProto::FLOATS);
      for (const float number : Numbers<float>(bytes)) proto.add_floats(number);
      break;
    case AttributeType::kString:
      proto.set_type(onnx::AttributeProto::STRING);
      proto.set_s(bytes);
      break;
    case AttributeType::kStrings:
      proto.set_type(onnx::AttributeProto::STRINGS);
      for (const std::string& text : Texts(bytes)) proto.add_strings(text);
      break;
    default:
      throw Error(ErrorCategory::kUnsupported,
                  fmt::format("its attribute '{}' is of a type that cannot be read", name));
  }
}

// ---- types and tensors ----

void GraphReader::SetShape(const ShapeInfo* info, onnx::TypeProto::Tensor& type) const {
  if (api_.KnowsShapes() && !api_.Call<HasShape>(info)) return;
  size_t rank = 0;
  api_.Ask<GetDimensionsCount>(info, &rank);
  std::vector<int64_t> sizes(rank);
  std::vector<const char*> names(rank);
  if (rank > 0) {
    api_.Ask<GetDimensions>(info, sizes.data(), rank);
    api_.Ask<GetSymbolicDimensions>(info, names.data(), rank);
  }
  onnx::TensorShapeProto& shape = *type.mutable_shape();
  for (size_t i = 0; i < rank; ++i) {
    auto* dim = shape.add_dim();
    if (sizes[i] >= 0) {
      dim->set_dim_value(sizes[i]);
    } else if (names[i] != nullptr && *names[i] != '\0') {
      dim->set_dim_param(names[i]);
    }
  }
}

void GraphReader::SetType(const ValueInfo* value, onnx::ValueInfoProto& proto) const {
  proto.set_name(api_.NameOf(value));
  const TypeInfo* type = nullptr;
  api_.Ask<GetValueInfoTypeInfo>(value, &type);
  int kind = 0;
  if (type == nullptr) return;
  api_.Ask<GetOnnxTypeFromTypeInfo>(type, &kind);
  if (kind != kTensorValue) return;  // without a type: the importer says that it cannot be read
  const ShapeInfo* info = nullptr;
  api_.Ask<CastTypeInfoToTensorInfo>(type, &info);
  int element_type = 0;
  api_.Ask<GetTensorElementType>(info, &element_type);
  onnx::TypeProto::Tensor& tensor = *proto.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(element_type);
  SetShape(info, tensor);
}

void GraphReader::SetTensor(const Value* value, onnx::TensorProto& proto) {
  ShapeInfo* info = nullptr;
  api_.Ask<GetTensorTypeAndShape>(value, &info);
  onnx::TypeProto::Tensor type;
  int element_type = 0;
  api_.Ask<GetTensorElementType>(static_cast<const ShapeInfo*>(info), &element_type);
  SetShape(info, type);
  api_.Call<ReleaseShapeInfo>(info);
  proto.set_data_type(element_type);
  for (const auto& dim : type.shape().dim()) proto.add_dims(dim.dim_value());
  if (element_type == kStringElements) {
    throw Error(ErrorCategory::kUnsupported, "it has a constant of strings");
  }
  size_t size = 0;
  const void* data = nullptr;
  api_.Ask<GetTensorSizeInBytes>(value, &size);
  api_.Ask<GetTensorData>(value, &data);
  if (size <= kMostInside) {
    proto.set_raw_data(data, size);
    return;
  }
  written_ = (written_ + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
  if (lseek(file_, written_, SEEK_SET) < 0 || !WriteAll(file_, data, size)) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot be written: {}", std::strerror(errno)),
                weights_.string());
  }
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, text] : {std::pair<std::string, std::string>("location", weights_.filename().string()),
                                  {"offset", std::to_string(written_)},
                                  {"length", std::to_string(size)}}) {
    auto* entry = proto.add_external_data();
    entry->set_key(key);
    entry->set_value(text);
  }
  written_ += static_cast<int64_t>(size);
  hasher_.Add(data, size);
}

}  // namespace collage::onnxruntime
