// node_context.cc: attributes and inputs of a node, and calls that are evaluated at once when they can be.
#include <fmt/format.h>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/tensor_reader.h"
#include "ir/evaluate.h"
#include "onnx/onnx-ml.pb.h"

namespace collage {
namespace {

// Constants larger than this are not made while importing: a broadcast or a fill may stay symbolic at no cost.
constexpr int64_t kLargestFoldedBytes = int64_t{64} << 20;

}  // namespace

NodeContext::NodeContext(OnnxGraph& graph, const onnx::NodeProto& node, std::vector<Expr> inputs, int64_t opset)
    : graph_(graph), node_(node), inputs_(std::move(inputs)), opset_(opset) {
  name_ = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : node.op_type();
}

const std::string& NodeContext::op_type() const { return node_.op_type(); }
size_t NodeContext::num_outputs() const { return static_cast<size_t>(node_.output_size()); }

bool NodeContext::HasOutput(size_t i) const { return i < num_outputs() && !node_.output(static_cast<int>(i)).empty(); }

const Expr& NodeContext::Input(size_t i) const {
  if (!HasInput(i)) Invalid(fmt::format("input {} is missing", i));
  return inputs_[i];
}

const TensorTypeNode& NodeContext::TypeOf(const Expr& expr) const {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr) Invalid("expected a tensor");
  return *type;
}

const onnx::AttributeProto* NodeContext::Find(const char* name, int type) const {
  const onnx::AttributeProto* found = graph_.FindAttribute(node_, name);
  // Old files leave the type out.
  if (found != nullptr && found->type() != type && found->type() != onnx::AttributeProto::UNDEFINED) {
    const auto text = [](int value) {
      return onnx::AttributeProto::AttributeType_Name(static_cast<onnx::AttributeProto::AttributeType>(value));
    };
    Invalid(fmt::format("attribute '{}' must be of type {}, not {}", name, text(type), text(found->type())));
  }
  return found;
}

bool NodeContext::HasAttr(const char* name) const { return graph_.FindAttribute(node_, name) != nullptr; }

Shape NodeContext::ShapeOf(const Expr& expr) const {
  const TensorTypeNode& type = TypeOf(expr);
  if (!type.is_static()) Unsupported("needs sizes that are known at run time only: " + ToString(expr->checked_type()));
  return type.static_shape();
}

int64_t NodeContext::Int(const char* name, int64_t fallback) const {
  const auto* attribute = Find(name, onnx::AttributeProto::INT);
  return attribute == nullptr ? fallback : attribute->i();
}

double NodeContext::Float(const char* name, double fallback) const {
  const auto* attribute = Find(name, onnx::AttributeProto::FLOAT);
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f());
}

std::string NodeContext::String(const char* name, const std::string& fallback) const {
  const auto* attribute = Find(name, onnx::AttributeProto::STRING);
  return attribute == nullptr ? fallback : attribute->s();
}

std::vector<int64_t> NodeContext::Ints(const char* name, std::vector<int64_t> fallback) const {
  const auto* attribute = Find(name, onnx::AttributeProto::INTS);
  if (attribute == nullptr) return fallback;
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> NodeContext::Floats(const char* name) const {
  const auto* attribute = Find(name, onnx::AttributeProto::FLOATS);
  if (attribute == nullptr) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> NodeContext::Strings(const char* name) const {
  const auto* attribute = Find(name, onnx::AttributeProto::STRINGS);
  if (attribute == nullptr) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

DataType NodeContext::DTypeOf(int64_t onnx_type) const {
  const std::optional<DataType> dtype = OnnxDType(static_cast<int>(onnx_type));
  if (!dtype) Unsupported("element type " + OnnxDTypeName(static_cast<int>(onnx_type)) + " is not supported");
  return *dtype;
}

std::optional<Tensor> NodeContext::TensorAttr(const char* name) const {
  const auto* attribute = Find(name, onnx::AttributeProto::TENSOR);
  if (attribute == nullptr || !attribute->has_t()) return std::nullopt;
  return graph_.reader().Read(attribute->t());
}

std::vector<Expr> NodeContext::ConvertSubgraph(const char* name, const std::vector<Expr>& inputs) {
  const auto* attribute = Find(name, onnx::AttributeProto::GRAPH);
  if (attribute == nullptr) Invalid(fmt::format("has no graph '{}'", name));
  return graph_.ConvertSubgraph(attribute->g(), inputs);
}

size_t NodeContext::NumSubgraphNodes(const char* name) const {
  const auto* attribute = Find(name, onnx::AttributeProto::GRAPH);
  return attribute == nullptr ? 0 : static_cast<size_t>(attribute->g().node_size());
}

Tensor NodeContext::Constant(size_t i) const {
  const ConstantNode* constant = As<ConstantNode>(Input(i));
  if (constant == nullptr) Unsupported(fmt::format("input {} ({}) must be constant", i, graph_.Describe(node_, i)));
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

}  // namespace collage
