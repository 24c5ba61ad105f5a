// importer.cc: reads the protobuf file and converts its nodes in order.
#include "frontend/onnx/importer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "ir/evaluate.h"
#include "onnx/onnx-ml.pb.h"
#include "support/edit_distance.h"
#include "support/file.h"

namespace collage {
namespace {

// Constants larger than this are not made while importing: a broadcast or a fill may stay symbolic at no cost.
constexpr int64_t kLargestFoldedBytes = int64_t{64} << 20;

std::optional<DataType> DTypeOf(int onnx_type) {
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

std::string DTypeName(int onnx_type) {
  const std::string& name = onnx::TensorProto::DataType_Name(onnx_type);
  return name.empty() ? std::to_string(onnx_type) : name;
}

}  // namespace

/// The graph under conversion: its values by name.
class OnnxGraph {
 public:
  OnnxGraph(const std::filesystem::path& path, const ImportOptions& options) : path_(path), options_(options) {}

  IRModule Import() {
    Parse();
    CheckOperators();
    for (const auto& initializer : model_.graph().initializer()) {
      values_[initializer.name()] = MakeConstant(ReadTensor(initializer));
    }
    AddInputs();
    for (const auto& node : model_.graph().node()) Convert(node);
    return Finish();
  }

  Tensor ReadTensor(const onnx::TensorProto& proto) const {
    const std::string where = fmt::format("{}: tensor '{}'", path_.string(), proto.name());
    const std::optional<DataType> dtype = DTypeOf(proto.data_type());
    if (!dtype) {
      throw Error(ErrorCategory::kUnsupported,
                  fmt::format("element type {} is not supported", DTypeName(proto.data_type())), where);
    }
    const Shape shape(proto.dims().begin(), proto.dims().end());
    for (int64_t size : shape) {
      if (size < 0) throw Error(ErrorCategory::kInput, fmt::format("dimension {}", size), where);
    }
    if (proto.data_location() == onnx::TensorProto::EXTERNAL) return ReadExternal(proto, shape, *dtype, where);
    Tensor tensor = Tensor::Zeros(shape, *dtype);
    if (proto.has_raw_data()) {
      if (proto.raw_data().size() != tensor.size_bytes()) {
        throw Error(
            ErrorCategory::kInput,
            fmt::format("{} bytes of data for a {} {}", proto.raw_data().size(), dtype->ToString(), ToString(shape)),
            where);
      }
      std::memcpy(tensor.raw(), proto.raw_data().data(), tensor.size_bytes());
      return tensor;
    }
    ReadTyped(proto, tensor, where);
    return tensor;
  }

 private:
  template <typename Field, typename T>
  static void CopyField(const Field& field, const Tensor& tensor, const std::string& where) {
    if (field.size() != tensor.num_elements()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("{} elements for shape {}", field.size(), ToString(tensor.shape())), where);
    }
    for (int i = 0; i < field.size(); ++i) tensor.data<T>()[i] = static_cast<T>(field[i]);
  }

  static void ReadTyped(const onnx::TensorProto& proto, const Tensor& tensor, const std::string& where) {
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

  Tensor ReadExternal(const onnx::TensorProto& proto, const Shape& shape, DataType dtype,
                      const std::string& where) const {
    std::string location;
    uint64_t offset = 0;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") offset = std::stoull(entry.value());
    }
    const std::filesystem::path folder = path_.parent_path();
    std::shared_ptr<MappedFile>& file = external_[location];
    if (!file) file = MappedFile::Open(folder / location);
    const auto bytes = static_cast<uint64_t>(NumElements(shape)) * dtype.size_bytes();
    if (offset > file->bytes().size() || bytes > file->bytes().size() - offset) {
      throw Error(ErrorCategory::kInput, fmt::format("external data file '{}' is too short", location), where);
    }
    if (offset % 64 == 0) return Tensor::View(shape, dtype, file->bytes().data() + offset, file);
    Tensor tensor = Tensor::Empty(shape, dtype);
    std::memcpy(tensor.raw(), file->bytes().data() + offset, bytes);
    return tensor;
  }

  void Parse() {
    const std::shared_ptr<MappedFile> file = MappedFile::Open(path_);
    if (file->bytes().size() > std::numeric_limits<int>::max()) {
      throw Error(ErrorCategory::kUnsupported, "the file is larger than 2 GB", path_.string(),
                  "store the weights as external data");
    }
    google::protobuf::io::ArrayInputStream array(file->bytes().data(), static_cast<int>(file->bytes().size()));
    google::protobuf::io::CodedInputStream stream(&array);
    stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
    google::protobuf::SetLogHandler(nullptr);
    const bool parsed = model_.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
    if (!parsed || !model_.has_graph() || model_.graph().node_size() == 0) {
      throw Error(ErrorCategory::kInput, "not an ONNX model: the file is damaged, truncated or of another kind",
                  path_.string());
    }
    for (const auto& import : model_.opset_import()) {
      if (import.domain().empty() || import.domain() == "ai.onnx") opset_ = import.version();
    }
    if (opset_ < 7) {
      throw Error(ErrorCategory::kUnsupported,
                  fmt::format("the model is of opset {}; 7 and newer are supported", opset_), path_.string(),
                  "convert it with onnx.version_converter");
    }
  }

  /// All unknown operators in one error.
  void CheckOperators() const {
    std::map<std::string, std::pair<int, std::string>> unknown;
    for (const auto& node : model_.graph().node()) {
      const bool known =
          (node.domain().empty() || node.domain() == "ai.onnx") && AllOnnxConverters().contains(node.op_type());
      if (known) continue;
      auto& [count, first] = unknown[node.domain().empty() ? node.op_type() : node.domain() + "::" + node.op_type()];
      if (count++ == 0) first = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
    }
    if (unknown.empty()) return;
    std::string text;
    for (const auto& [op, uses] : unknown) {
      text += fmt::format("{}'{}' ({} time{}, first at node '{}')", text.empty() ? "" : ", ", op, uses.first,
                          uses.first == 1 ? "" : "s", uses.second);
    }
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("{} operator{} of opset {} {} not supported: {}", unknown.size(),
                            unknown.size() == 1 ? "" : "s", opset_, unknown.size() == 1 ? "is" : "are", text),
                path_.string());
  }

  void AddInputs() {
    std::vector<const onnx::ValueInfoProto*> inputs;
    std::set<std::string> names;
    for (const auto& input : model_.graph().input()) {
      if (values_.contains(input.name())) continue;  // an initializer that is listed as input too
      inputs.push_back(&input);
      names.insert(input.name());
    }
    for (const auto& [name, shape] : options_.shapes) {
      if (names.contains(name)) continue;
      std::string known;
      for (const std::string& candidate : names) known += (known.empty() ? "'" : ", '") + candidate + "'";
      throw Error(ErrorCategory::kInput, fmt::format("the model has no input '{}'", name), path_.string(),
                  "its inputs are " + known);
    }
    for (const onnx::ValueInfoProto* input : inputs) {
      const Var param = MakeVar(input->name(), InputType(*input));
      param->set_checked_type(param->type_annotation());
      params_.push_back(param);
      values_[input->name()] = param;
    }
  }

  Type InputType(const onnx::ValueInfoProto& input) const {
    const std::string where = path_.string();
    if (!input.type().has_tensor_type()) {
      throw Error(ErrorCategory::kUnsupported, fmt::format("input '{}' is no tensor", input.name()), where);
    }
    const auto& tensor = input.type().tensor_type();
    const std::optional<DataType> dtype = DTypeOf(tensor.elem_type());
    if (!dtype) {
      throw Error(ErrorCategory::kUnsupported,
                  fmt::format("input '{}' has element type {}, which is not supported", input.name(),
                              DTypeName(tensor.elem_type())),
                  where);
    }
    Shape shape;
    std::string text;
    std::string example;
    bool is_open = !tensor.has_shape();
    for (const auto& dim : tensor.shape().dim()) {
      const bool known = dim.has_dim_value() && dim.dim_value() > 0;
      shape.push_back(known ? dim.dim_value() : -1);
      is_open = is_open || !known;
      text += (text.empty() ? "" : ", ") + (known                     ? std::to_string(dim.dim_value())
                                            : dim.dim_param().empty() ? "?"
                                                                      : dim.dim_param());
      example += (example.empty() ? "" : "x") + (known ? std::to_string(dim.dim_value()) : "1");
    }
    const auto given = options_.shapes.find(input.name());
    if (given == options_.shapes.end()) {
      if (is_open) {
        throw Error(ErrorCategory::kInput, fmt::format("input '{}' has dynamic dimensions [{}]", input.name(), text),
                    where, fmt::format("give its shape, as in --shape {}={}", input.name(), example));
      }
      return TensorType(shape, *dtype);
    }
    bool fits = !tensor.has_shape() || given->second.size() == shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] < 0 || shape[i] == given->second[i];
    if (!fits) {
      throw Error(
          ErrorCategory::kInput,
          fmt::format("input '{}' has shape [{}], which {} does not fit", input.name(), text, ToString(given->second)),
          where);
    }
    return TensorType(given->second, *dtype);
  }

  void Convert(const onnx::NodeProto& node) {
    std::vector<Expr> inputs;
    for (const std::string& name : node.input()) {
      if (name.empty()) {
        inputs.push_back(nullptr);
        continue;
      }
      auto it = values_.find(name);
      if (it == values_.end()) {
        throw Error(ErrorCategory::kInput,
                    fmt::format("node '{}' ({}) reads '{}', which nothing computes before it", node.name(),
                                node.op_type(), name),
                    path_.string());
      }
      inputs.push_back(it->second);
    }
    NodeContext context(*this, node, std::move(inputs), opset_);
    std::vector<Expr> outputs;
    try {
      outputs = AllOnnxConverters().at(node.op_type())(context);
    } catch (const Error& error) {
      if (error.category() == ErrorCategory::kInternal) throw;
      throw Error(error.category(),
                  fmt::format("node '{}' ({}, opset {}): {}", context.name(), node.op_type(), opset_, error.message()),
                  path_.string(), error.hint());
    }
    for (int i = 0; i < node.output_size() && i < static_cast<int>(outputs.size()); ++i) {
      if (outputs[static_cast<size_t>(i)]) values_[node.output(i)] = outputs[static_cast<size_t>(i)];
    }
  }

  IRModule Finish() {
    std::vector<Expr> results;
    AttrValue::List names;
    for (const auto& output : model_.graph().output()) {
      auto it = values_.find(output.name());
      if (it == values_.end()) {
        throw Error(ErrorCategory::kInput, fmt::format("nothing computes output '{}'", output.name()), path_.string());
      }
      results.push_back(it->second);
      names.emplace_back(output.name());
    }
    const Expr body = results.size() == 1 ? results[0] : MakeTuple(std::move(results));
    Function main = MakeFunction(params_, body, nullptr, {{"output_names", std::move(names)}});
    InferType(main);
    IRModule module = IRModule::FromFunction(std::move(main));
    module.attrs.Set("model", path_.filename().string());
    module.attrs.Set("opset", opset_);
    return module;
  }

  std::filesystem::path path_;
  const ImportOptions& options_;
  onnx::ModelProto model_;
  int64_t opset_ = 0;
  std::unordered_map<std::string, Expr> values_;
  std::vector<Var> params_;
  mutable std::map<std::string, std::shared_ptr<MappedFile>> external_;
};

NodeContext::NodeContext(OnnxGraph& graph, const onnx::NodeProto& node, std::vector<Expr> inputs, int64_t opset)
    : graph_(graph), node_(node), inputs_(std::move(inputs)), opset_(opset) {
  name_ = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : node.op_type();
}

const std::string& NodeContext::op_type() const { return node_.op_type(); }
size_t NodeContext::num_outputs() const { return static_cast<size_t>(node_.output_size()); }

const Expr& NodeContext::Input(size_t i) const {
  if (!HasInput(i)) Invalid(fmt::format("input {} is missing", i));
  return inputs_[i];
}

const TensorTypeNode& NodeContext::TypeOf(const Expr& expr) const {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr) Invalid("expected a tensor");
  return *type;
}

const onnx::AttributeProto* NodeContext::Find(const char* name) const {
  for (const auto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

bool NodeContext::HasAttr(const char* name) const { return Find(name) != nullptr; }

int64_t NodeContext::Int(const char* name, int64_t fallback) const {
  const auto* attribute = Find(name);
  return attribute == nullptr ? fallback : attribute->i();
}

double NodeContext::Float(const char* name, double fallback) const {
  const auto* attribute = Find(name);
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f());
}

std::string NodeContext::String(const char* name, const std::string& fallback) const {
  const auto* attribute = Find(name);
  return attribute == nullptr ? fallback : attribute->s();
}

std::vector<int64_t> NodeContext::Ints(const char* name, std::vector<int64_t> fallback) const {
  const auto* attribute = Find(name);
  if (attribute == nullptr) return fallback;
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> NodeContext::Floats(const char* name) const {
  const auto* attribute = Find(name);
  if (attribute == nullptr) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> NodeContext::Strings(const char* name) const {
  const auto* attribute = Find(name);
  if (attribute == nullptr) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

DataType NodeContext::DTypeOf(int64_t onnx_type) const {
  const std::optional<DataType> dtype = collage::DTypeOf(static_cast<int>(onnx_type));
  if (!dtype) Unsupported("element type " + DTypeName(static_cast<int>(onnx_type)));
  return *dtype;
}

std::optional<Tensor> NodeContext::TensorAttr(const char* name) const {
  const auto* attribute = Find(name);
  if (attribute == nullptr || !attribute->has_t()) return std::nullopt;
  return graph_.ReadTensor(attribute->t());
}

Tensor NodeContext::Constant(size_t i) const {
  const ConstantNode* constant = As<ConstantNode>(Input(i));
  if (constant == nullptr) Unsupported(fmt::format("input {} must be constant", i));
  return constant->value();
}

Expr NodeContext::Op(std::string_view op_name, std::vector<Expr> args, Attrs attrs) {
  Expr call = MakeCall(op_name, args, std::move(attrs));
  call->set_span({name_, 0, 0});
  InferType(call);
  std::vector<Tensor> inputs;
  std::vector<Type> types;
  for (const Expr& arg : args) {
    types.push_back(arg->checked_type());
    const TupleNode* tuple = As<TupleNode>(arg);
    for (const Expr& leaf : tuple != nullptr ? tuple->fields() : std::vector<Expr>{arg}) {
      const ConstantNode* constant = As<ConstantNode>(leaf);
      if (constant == nullptr) return call;
      inputs.push_back(constant->value());
    }
  }
  const CallNode* node = As<CallNode>(call);
  if (!ShouldFold(*node->op(), inputs)) return call;
  int64_t bytes = 0;
  for (const Type& leaf : FlattenTensorTypes(call->checked_type())) {
    const TensorTypeNode* type = AsTensorType(leaf);
    if (type->is_static())
      bytes += NumElements(type->static_shape()) * static_cast<int64_t>(type->dtype().size_bytes());
  }
  if (bytes > kLargestFoldedBytes) return call;
  std::vector<Expr> constants;
  for (Tensor& tensor : EvaluateOp(*node->op(), node->attrs(), types, inputs)) {
    constants.push_back(MakeConstant(std::move(tensor)));
    constants.back()->set_span({name_, 0, 0});
  }
  return AsTensorType(call->checked_type()) != nullptr ? constants[0] : Tuple(std::move(constants));
}

Expr NodeContext::Field(const Expr& tuple, int index) {
  if (const TupleNode* known = As<TupleNode>(tuple)) return known->fields()[static_cast<size_t>(index)];
  Expr item = MakeTupleGetItem(tuple, index);
  item->set_span({name_, 0, 0});
  InferType(item);
  return item;
}

Expr NodeContext::Tuple(std::vector<Expr> fields) {
  Expr tuple = MakeTuple(std::move(fields));
  tuple->set_span({name_, 0, 0});
  InferType(tuple);
  return tuple;
}

Expr NodeContext::Cast(const Expr& x, DataType dtype) {
  return TypeOf(x).dtype() == dtype ? x : Op("cast", {x}, {{"dtype", dtype}});
}

Expr NodeContext::Reshape(const Expr& x, const Shape& shape) {
  return ShapeOf(x) == shape ? x : Op("reshape", {x}, {{"newshape", shape}, {"allowzero", true}});
}

void NodeContext::Unsupported(const std::string& what) const { throw Error(ErrorCategory::kUnsupported, what); }
void NodeContext::Invalid(const std::string& what) const { throw Error(ErrorCategory::kInput, what); }

const OnnxConverters& AllOnnxConverters() {
  static const OnnxConverters converters = [] {
    OnnxConverters all;
    AddMathConverters(all);
    AddNeuralConverters(all);
    AddTensorConverters(all);
    AddRecurrentConverters(all);
    AddQuantisedConverters(all);
    return all;
  }();
  return converters;
}

IRModule ImportOnnx(const std::filesystem::path& path, const ImportOptions& options) {
  return OnnxGraph(path, options).Import();
}

}  // namespace collage
