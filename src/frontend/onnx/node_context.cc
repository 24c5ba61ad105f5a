// node_context.cc: attributes and inputs of a node, and calls that are evaluated at once when they can be.
#include <fmt/format.h>

#include <algorithm>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "frontend/onnx/graph.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/narrow_types.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/tensor_reader.h"
#include "ir/eval/evaluate.h"
#include "ir/ops/relations.h"
#include "onnx/onnx-ml.pb.h"

namespace collage {
namespace {

// Products that take longer than a second or so are left to the run.
constexpr double kMostFoldedProducts = 1e9;

/// Products that evaluating a call of `op` adds up, at most.
double NumProducts(const CallNode& call, std::span<const Type> types, std::span<const Tensor> inputs) {
  const OpDef& op = *call.op();
  if (op.multiply_adds) return op.multiply_adds({types, call.attrs()});
  double products = 1;
  if (op.name == "einsum") {
    for (const Tensor& input : inputs) products *= static_cast<double>(input.num_elements());
  } else if (call.attrs().Find("pool_size") != nullptr) {
    for (int64_t size : call.attrs().Ints("pool_size")) products *= static_cast<double>(size);
    products = std::min(products, static_cast<double>(inputs[0].num_elements()));
    const TensorTypeNode* result = AsTensorType(call.checked_type());
    if (result != nullptr && result->is_static()) products *= static_cast<double>(NumElements(result->static_shape()));
  }
  return products;
}

}  // namespace

NodeContext::NodeContext(OnnxGraph& graph, const onnx::NodeProto& node, std::vector<Expr> inputs, int64_t opset,
                         std::vector<const NarrowType*> narrow)
    : graph_(graph), node_(node), inputs_(std::move(inputs)), opset_(opset), narrow_(std::move(narrow)) {
  name_ = NodeName(node);
}

const std::string& NodeContext::op_type() const { return node_.op_type(); }
size_t NodeContext::num_outputs() const { return static_cast<size_t>(node_.output_size()); }

bool NodeContext::HasOutput(size_t i) const { return i < num_outputs() && !node_.output(static_cast<int>(i)).empty(); }

const Expr& NodeContext::Input(size_t i) const {
  if (!HasInput(i)) Invalid(fmt::format("input {} is missing", i));
  return inputs_[i];
}

void NodeContext::SetNarrow(size_t i, const NarrowType* type) {
  if (narrow_outputs_.size() <= i) narrow_outputs_.resize(i + 1);
  narrow_outputs_[i] = type;
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

void NodeContext::NameSizes(const Expr& expr) const { graph_.sizes().NameSizes(expr); }

Sizes NodeContext::SizesOf(const Expr& expr) const {
  graph_.sizes().NameSizes(expr);
  return SizeTable::Of(TypeOf(expr));
}

Shape NodeContext::ShapeOf(const Expr& expr) const {
  const TensorTypeNode& type = TypeOf(expr);
  if (!type.is_static()) NeedsSize("the shape " + SizesOf(expr).ToString());
  return type.static_shape();
}

int64_t NodeContext::Known(const SymbolicSize& size, std::string_view what) const {
  if (!size.is_known()) NeedsSize(fmt::format("{}, {}", what, size.ToString()));
  return size.known();
}

std::optional<SymbolicSize> NodeContext::Broadcast(const SymbolicSize& a, const SymbolicSize& b) {
  return BroadcastShapes({Dim::Of(a)}, {Dim::Of(b)})[0].symbolic();
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

Tensor NodeContext::StringTensor(const std::vector<std::string>& texts) const {
  const Tensor numbers = Tensor::Empty({static_cast<int64_t>(texts.size())}, kInt64);
  for (size_t i = 0; i < texts.size(); ++i) numbers.data<int64_t>()[i] = graph_.reader().strings().Add(texts[i]);
  return numbers;
}

DataType NodeContext::DTypeOf(int64_t onnx_type) const {
  const std::optional<DataType> dtype = OnnxDType(static_cast<int>(onnx_type));
  if (!dtype) Unsupported("element type " + OnnxDTypeName(static_cast<int>(onnx_type)) + " is not supported");
  return *dtype;
}

std::optional<Tensor> NodeContext::TensorAttr(const char* name, const NarrowType** narrow) const {
  const auto* attribute = Find(name, onnx::AttributeProto::TENSOR);
  if (attribute == nullptr || !attribute->has_t()) return std::nullopt;
  const NarrowType* type = FindNarrowType(attribute->t().data_type());
  if (narrow != nullptr) *narrow = type;
  if (narrow == nullptr && type != nullptr)
    Unsupported(fmt::format("attribute '{}' of element type {}", name, type->name));
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

std::vector<Expr> NodeContext::ConvertAs(const std::string& op, std::vector<Expr> inputs,
                                         std::optional<int64_t> opset) {
  const OnnxRow* row = AllOnnxConverters().Find(op);
  COLLAGE_CHECK(row != nullptr) << "there is no operator '" << op << "' of ONNX";
  NodeContext context(graph_, node_, std::move(inputs), opset.value_or(opset_));
  return row->convert(context);
}

Tensor NodeContext::Constant(size_t i) const {
  const ConstantNode* constant = As<ConstantNode>(Input(i));
  if (constant == nullptr) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("input {} ({}) must be constant", i, graph_.Describe(node_, i)), {},
                graph_.ConstantHint(node_, i));
  }
  return constant->value();
}

std::optional<Sizes> NodeContext::KnownInts(size_t i) const { return graph_.sizes().ValuesOf(Input(i)); }

bool NodeContext::IsComputedFromSizes(size_t i) const { return graph_.sizes().IsComputedFromSizes(Input(i)); }

Sizes NodeContext::SizeInts(size_t i) const {
  if (std::optional<Sizes> known = KnownInts(i)) return *std::move(known);
  if (!IsConstant(i) && IsComputedFromSizes(i)) NeedsSize(fmt::format("input {} ({})", i, graph_.Describe(node_, i)));
  return Sizes(ConstantInts(i));
}

Expr NodeContext::Op(std::string_view op_name, std::vector<Expr> args, Attrs attrs) {
  Expr call = MakeCall(op_name, args, std::move(attrs));
  call->set_span({name_, 0, 0});
  InferType(call);
  graph_.sizes().NameSizes(call);
  if (const Expr constant = graph_.sizes().Follow(call)) return constant;
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
      bytes += std::min<int64_t>(kLargestFoldedBytes + 1,
                                 NumElements(type->static_shape()) * static_cast<int64_t>(type->dtype().size_bytes()));
  }
  if (op_name == "arange") {
    const double count = (inputs[1].At(0) - inputs[0].At(0)) / inputs[2].At(0);
    if (count > static_cast<double>(kLargestFoldedBytes) / sizeof(int64_t)) return call;
  }
  if (bytes > kLargestFoldedBytes || NumProducts(*node, types, inputs) > kMostFoldedProducts) return call;
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
  graph_.sizes().NameSizes(item);
  graph_.sizes().Follow(item);
  return item;
}

Expr NodeContext::Tuple(std::vector<Expr> fields) {
  Expr tuple = MakeTuple(std::move(fields));
  tuple->set_span({name_, 0, 0});
  InferType(tuple);
  graph_.sizes().Follow(tuple);
  return tuple;
}

Expr NodeContext::Cast(const Expr& x, DataType dtype) {
  return TypeOf(x).dtype() == dtype ? x : Op("cast", {x}, {{"dtype", dtype}});
}

// ---- shapes that a run decides ----

namespace {

/// Relay's codes for copying (0), merging two (-3) and splitting one (-4), dimension by dimension; nothing where that
/// does not lead from one shape to the other for all sizes.
std::optional<std::vector<int64_t>> StepByStep(const Sizes& from, const Sizes& to) {
  std::vector<int64_t> steps;
  size_t i = 0;
  for (size_t j = 0; j < to.size(); ++j) {
    if (i < from.size() && to[j] == from[i]) {
      steps.push_back(0);
      ++i;
    } else if (i + 1 < from.size() && to[j] == from[i] * from[i + 1]) {
      steps.push_back(-3);
      i += 2;
    } else if (i < from.size() && j + 1 < to.size() && from[i] == to[j] * to[j + 1]) {
      if (!to[j].is_known() && !to[j + 1].is_known()) return std::nullopt;
      // The part that is not given is the quotient, which 0 has none of.
      if ((to[j].is_known() && to[j].known() == 0) || (to[j + 1].is_known() && to[j + 1].known() == 0)) {
        return std::nullopt;
      }
      steps.insert(steps.end(),
                   {-4, to[j].is_known() ? to[j].known() : -1, to[j + 1].is_known() ? to[j + 1].known() : -1});
      ++i;
      ++j;
    } else {
      return std::nullopt;
    }
  }
  if (i != from.size()) return std::nullopt;
  return steps;
}

PartialSizes AsKnown(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

}  // namespace

Expr NodeContext::Reshape(const Expr& x, const Sizes& shape, int inferred) {
  const Sizes from = SizesOf(x);
  Sizes wanted = shape;
  // The inferred size is a quotient that holds for all sizes, if there is one.
  if (inferred >= 0) {
    const auto at = static_cast<size_t>(inferred);
    wanted[at] = 1;
    if (auto quotient = SymbolicSize::DivideExactly(from.Product(), wanted.Product())) {
      wanted[at] = *std::move(quotient);
      inferred = -1;
    }
  }
  if (inferred < 0 && from == wanted) return x;
  if (inferred < 0 && from.is_known() && wanted.is_known()) {
    return Op("reshape", {x}, {{"newshape", wanted.known()}, {"allowzero", true}});
  }
  const auto reshaped = [&](const Expr& result) {
    PartialSizes sizes = AsKnown(wanted);
    if (inferred >= 0) sizes[static_cast<size_t>(inferred)] = std::nullopt;
    return WithSizes(result, sizes);
  };
  if (inferred < 0) {
    if (const auto steps = StepByStep(from, wanted)) return reshaped(Op("reshape", {x}, {{"newshape", *steps}}));
  }
  // One size that is not a number takes what the others leave, if that is known. A 0 would be copied.
  std::vector<int64_t> numbers;
  int open = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool is_open = !wanted[i].is_known() || static_cast<int>(i) == inferred;
    open += is_open ? 1 : 0;
    numbers.push_back(is_open ? -1 : wanted[i].known());
  }
  const bool is_whole = inferred >= 0 || from.Product() == wanted.Product();
  if (open == 1 && is_whole && std::ranges::find(numbers, 0) == numbers.end()) {
    return reshaped(Op("reshape", {x}, {{"newshape", numbers}}));
  }
  if (inferred >= 0) wanted[static_cast<size_t>(inferred)] = -1;
  const Expr sizes = Compute(wanted);
  if (inferred >= 0) wanted[static_cast<size_t>(inferred)] = 1;
  // A size that is 0 in some run is one, no dimension to copy.
  return reshaped(Op("dyn.reshape", {x, sizes}, {{"allowzero", inferred < 0}}));
}

Expr NodeContext::BroadcastTo(const Expr& x, const Sizes& shape) {
  const Sizes from = SizesOf(x);
  if (from == shape) return x;
  if (shape.is_known() && from.is_known()) return Op("broadcast_to", {x}, {{"shape", shape.known()}});
  return WithSizes(Op("dyn.broadcast_to", {x, Compute(shape)}), AsKnown(shape));
}

Expr NodeContext::Full(const Expr& value, const Sizes& shape) {
  if (shape.is_known()) return Op("full", {value}, {{"shape", shape.known()}});
  return WithSizes(Op("dyn.full", {value, Compute(shape)}), AsKnown(shape));
}

int64_t NodeContext::NextRandomStream() { return graph_.NextRandomStream(); }

Expr NodeContext::Compute(const Sizes& sizes) { return graph_.sizes().Compute(sizes); }

Expr NodeContext::ComputeScalar(const SymbolicSize& size) { return Reshape(Compute({size}), {}); }

Expr NodeContext::WithSizeAlong(const Expr& x, const Sizes& sizes, int64_t axis, std::optional<SymbolicSize> size) {
  PartialSizes all = AsKnown(sizes);
  all[static_cast<size_t>(axis)] = std::move(size);
  return WithSizes(x, all);
}

Expr NodeContext::WithSizes(const Expr& x, const PartialSizes& sizes) {
  const std::vector<Dim> own = TypeOf(x).shape();
  std::vector<int64_t> numbers;
  bool is_wiser = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const bool is_news = own[i].is_any() && sizes[i] && sizes[i]->is_known() && sizes[i]->known() > 0;
    numbers.push_back(is_news ? sizes[i]->known() : 0);
    is_wiser = is_wiser || is_news;
  }
  Expr result = x;
  if (is_wiser) result = Op("reshape", {x}, {{"newshape", numbers}});
  std::vector<Dim> shape = TypeOf(result).shape();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (shape[i].is_any() && sizes[i] && !sizes[i]->is_known() && Dim::Of(*sizes[i]).symbolic()) {
      shape[i] = Dim::Of(*sizes[i]);
    }
  }
  result->set_checked_type(TensorType(std::move(shape), TypeOf(result).dtype()));
  return result;
}

void NodeContext::NeedsSize(const std::string& what) const {
  throw Error(ErrorCategory::kUnsupported, fmt::format("needs to know {}, which the model leaves open", what), {},
              graph_.ShapeHint());
}

void NodeContext::Unsupported(const std::string& what) const { throw Error(ErrorCategory::kUnsupported, what); }
void NodeContext::Invalid(const std::string& what) const { throw Error(ErrorCategory::kInput, what); }

}  // namespace collage
